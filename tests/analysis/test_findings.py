"""A cause that several rails share is said once, and nothing that was said is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from powerlab.analysis.findings import causes
from powerlab.domain.run import Finding, Verdict

RAILS = ("VDD_IN", "VDD_CPU", "VDD_GPU", "VDD_SOC", "VDD_CV", "SYS5V")


def finding(detail: str, rule: str = "window-too-short", verdict: Verdict = Verdict.FLAGGED) -> Finding:
    return Finding(rule=rule, verdict=verdict, detail=detail)


def test_six_rails_with_one_cause_are_one_line() -> None:
    said = [
        finding(f"ina3221:{rail} updated only {n} times in the window of 0.31 s") for n, rail in enumerate(RAILS, 3)
    ]
    (cause,) = causes(said)
    assert cause.detail == "ina3221:VDD_IN updated only 3 times in the window of 0.31 s"
    assert cause.likewise == tuple(f"ina3221:{rail}" for rail in RAILS[1:])
    assert cause.count == 6


def test_other_rules_verdicts_and_sentences_stay_apart() -> None:
    said = [
        finding("throughput fell by 3.1 %", rule="drift"),
        finding("throughput fell by 3.1 %", rule="drift", verdict=Verdict.VOID),
        finding("throughput rose by 3.1 %", rule="drift"),
        finding("throughput fell by 3.1 %", rule="unsteady"),
    ]
    assert [cause.count for cause in causes(said)] == [1, 1, 1, 1]


@given(
    st.lists(
        st.builds(finding, st.sampled_from([f"rapl:{rail} stood still for {n} s" for rail in "ab" for n in (1, 2)]))
    )
)
def test_every_finding_is_counted_and_every_rail_is_named(said: list[Finding]) -> None:
    found = causes(said)
    assert sum(cause.count for cause in found) == len(said)
    text = " ".join(f"{cause.detail} {' '.join(cause.likewise)}" for cause in found)
    assert all(one.detail.split()[0] in text for one in said)
