"""Which points meet: the best and the rest, two sweeps, and the values of a dimension; and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from powerlab.analysis.comparison import Ratio
from powerlab.analysis.dimensions import in_words, varying
from powerlab.analysis.matches import along, best_against_rest, between_sweeps
from powerlab.analysis.wording import lead_words, percent_words, ratio_words, verdict_words
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import Provenance
from powerlab.domain.workload import Processor
from tests.analysis.paired_runs import point, sweep

RATE, POWER = "throughput_img_per_s", "power_w"
SLOW, FAST, FASTER = point(1), point(2), point(4)
OTHER = point(1, engine="onnxruntime")
OTHER_FAST = point(2, engine="onnxruntime")


def made_ratio(value, low=None, high=None, metric=RATE):
    return Ratio(
        metric=metric,
        value=value,
        low=low,
        high=high,
        level=None if low is None else 0.01,
        provenance=Provenance.MEASURED,
        repeat_count=3,
        paired=True,
    )


def places(matches):
    return [(match.one.point, match.other.point) for match in matches]


def test_the_best_meets_every_other_point_the_nearest_first():
    runs = sweep({SLOW: (50.0, 10.0), FASTER: (200.0, 10.0), FAST: (100.0, 10.0)})
    matches = best_against_rest(runs, RATE)
    assert places(matches) == [(FASTER, FAST), (FASTER, SLOW)]
    assert all(match.claimed for match in matches)
    assert places(best_against_rest(runs, "latency_p50_ms")) == places(matches)


def test_each_model_and_each_provenance_has_a_best_point_of_its_own():
    other = replace(SLOW, workload=replace(SLOW.workload, model="alexnet"))
    other_fast = replace(FAST, workload=replace(FAST.workload, model="alexnet"))
    runs = sweep({SLOW: (50.0, 10.0), other: (500.0, 10.0), FAST: (100.0, 10.0), other_fast: (900.0, 9.0)})
    assert places(best_against_rest(runs, RATE)) == [(FAST, SLOW), (other_fast, other)]
    mixed = sweep({SLOW: (50.0, 10.0)}) + sweep({FAST: (100.0, 10.0)}, provenance=Provenance.SIMULATED)
    assert best_against_rest(mixed, POWER) == ()


def test_all_claims_of_a_metric_hold_together():
    """Alone, each of the two differences would pass; together, the weaker one does not."""
    runs = sweep({FASTER: (103.0, 10.0), FAST: (100.0, 10.0), SLOW: (100.0, 10.0), OTHER: (100.1, 10.0)}, seed=3)
    matches = best_against_rest(runs, RATE)
    levels = sorted(match.ratio.level for match in matches)
    for match in matches:
        rank = levels.index(match.ratio.level)
        assert match.claimed == all(levels[place] <= 0.05 / (3 - place) for place in range(rank + 1))


def test_equal_points_are_seldom_told_apart_however_many_there_are():
    """Any claim in the whole table is wrong; one sweep in twenty may have one."""
    equal = {point(threads): (100.0, 10.0) for threads in range(1, 9)}
    wrong = sum(any(match.claimed for match in best_against_rest(sweep(equal, seed=seed), RATE)) for seed in range(300))
    assert wrong / 300 < 0.085


def test_the_same_points_of_two_sweeps_meet():
    before = sweep({SLOW: (50.0, 10.0), FAST: (100.0, 10.0)}, sweep_id="before")
    after = sweep({FAST: (120.0, 10.0), FASTER: (150.0, 10.0)}, sweep_id="after", seed=5)
    (match,) = between_sweeps(after, before, RATE, one_device=True)
    assert (match.one.point, match.other.point) == (FAST, FAST)
    assert match.one.runs[0].sweep_id == "after"
    assert match.ratio.value == pytest.approx(1.2, rel=0.05)
    assert match.claimed is True


def test_two_devices_share_no_sensor():
    before, after = (
        sweep({FAST: (100.0, power)}, sweep_id=name, scatter=0.001)
        for name, power in (("before", 10.0), ("after", 10.1))
    )
    (here,) = between_sweeps(after, before, POWER, one_device=True)
    (there,) = between_sweeps(after, before, POWER, one_device=False)
    assert (here.claimed, there.claimed) == (True, False)


def test_an_ignored_dimension_may_differ():
    before = sweep({SLOW: (50.0, 10.0), FAST: (100.0, 10.0)}, sweep_id="before")
    after = sweep({OTHER: (60.0, 10.0), OTHER_FAST: (120.0, 10.0)}, sweep_id="after")
    assert between_sweeps(after, before, RATE, one_device=True) == ()
    matches = between_sweeps(after, before, RATE, one_device=True, ignored=["engine"])
    assert places(matches) == [(OTHER, SLOW), (OTHER_FAST, FAST)]
    with pytest.raises(PowerlabError, match="without engine and threads points of the second sweep are alike"):
        between_sweeps(after, before, RATE, one_device=True, ignored=["engine", "threads"])


def test_along_a_dimension_all_else_is_alike():
    runs = sweep({SLOW: (50.0, 10.0), FAST: (100.0, 10.0), OTHER: (60.0, 10.0), OTHER_FAST: (110.0, 10.0)})
    assert places(along(runs, "engine", RATE)) == [(OTHER, SLOW), (OTHER_FAST, FAST)]
    assert places(along(runs, "threads", RATE)) == [(FAST, SLOW), (OTHER_FAST, OTHER)]
    backwards = tuple(reversed(runs))
    assert {match.other.point.workload.engine for match in along(backwards, "engine", RATE)} == {"builtin"}


@pytest.mark.parametrize(
    ("title", "sentence"),
    [
        ("engin", r"no dimension 'engin' \(did you mean engine\?\); choose from: model, workload"),
        ("mode", "no two points of the sweep differ in 'mode' alone"),
    ],
)
def test_a_dimension_that_cannot_be_compared_along_is_refused(title, sentence):
    with pytest.raises(PowerlabError, match=sentence):
        along(sweep({SLOW: (50.0, 10.0), FAST: (100.0, 10.0)}), title, RATE)


def test_two_provenances_stand_side_by_side():
    before = sweep({FAST: (100.0, 10.0)}, sweep_id="before")
    after = sweep({FAST: (100.0, 10.0)}, sweep_id="after", provenance=Provenance.SIMULATED)
    (match,) = between_sweeps(after, before, POWER, one_device=False)
    assert match.ratio is None
    assert match.reason == "measured and simulated: side by side only"
    assert match.claimed is False


def test_a_missing_figure_is_said_to_be_missing():
    before = sweep({FAST: (100.0, 10.0)}, sweep_id="before")
    (match,) = between_sweeps(before, before, "idle_power_w", one_device=True)
    assert (match.ratio, match.reason) == (None, "no figure")


def test_points_are_said_in_the_words_in_which_they_differ():
    words = varying([SLOW, FAST, OTHER])
    assert words(SLOW) == "builtin, 1 thread"
    assert words(OTHER) == "onnxruntime, 1 thread"
    assert varying([SLOW])(SLOW) == "resnet50"
    cores = replace(FAST, cores="0-1")
    assert [varying([FAST, cores])(one) for one in (FAST, cores)] == ["cores default", "cores 0-1"]


def test_a_graphics_processor_has_no_threads_to_say():
    card = point(1, processor=Processor.GPU)
    words = varying([SLOW, FAST, card])
    assert [words(one) for one in (SLOW, card)] == ["cpu, 1 thread", "gpu"]
    assert in_words(card) == "resnet50, gpu, batch 1, mode current"


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (made_ratio(1.12, 1.09, 1.15), "winner: beats 1 thread by 12.0 % ± 3.0 %"),
        (made_ratio(0.5, 0.45, 0.55, "latency_p50_ms"), "winner: beats 1 thread by 50.0 % ± 5.0 %"),
        (made_ratio(1.01, 0.97, 1.05), "tied with 1 thread (latency ratio 1.010, 95 % CI 0.970–1.050)"),
        (made_ratio(0.9, 0.85, 0.95), "tied with 1 thread (latency ratio 0.900, 95 % CI 0.850–0.950)"),
        (made_ratio(1.2), "not enough data: the latency ratio to 1 thread is 1.20, without an interval"),
        (None, "not enough data: no ratio to 1 thread"),
    ],
)
def test_only_an_interval_without_one_is_a_win(ratio, said):
    assert lead_words(ratio, "latency", "1 thread").startswith(said)


@pytest.mark.parametrize(
    ("ratio", "claimed", "said"),
    [
        (made_ratio(1.12, 1.09, 1.15), True, "12.0 % ± 3.0 % better"),
        (made_ratio(1.12, 1.09, 1.15, "latency_p50_ms"), True, "12.0 % ± 3.0 % worse"),
        (made_ratio(0.88, 0.85, 0.91), True, "12.0 % ± 3.0 % worse"),
        (made_ratio(1.01, 0.97, 1.05), False, "tied"),
        (made_ratio(1.12, 1.09, 1.15), False, "not significant among so many"),
        (made_ratio(1.12), False, "not enough data"),
    ],
)
def test_a_verdict_says_which_is_better_and_by_how_much(ratio, claimed, said):
    assert verdict_words(ratio, claimed=claimed) == said


def test_lopsided_intervals_show_both_ends_and_none_shows_no_sign():
    assert percent_words(1.2, 0.5, 2.5) == "120 % (50 % to 250 %)"
    assert percent_words(0.5, 0.5, 0.5) == "50.0 %"
    assert ratio_words(made_ratio(1.5, 1.5, 1.5)) == "1.50"
    assert ratio_words(made_ratio(1.234, 1.1, 1.4)) == "1.23, 95 % CI 1.10–1.40"
