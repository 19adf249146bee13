"""Compare a stored run with the recomputed one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from powerlab.domain.quantity import METRICS, Metric
from powerlab.domain.run import Contribution, Finding, Run
from powerlab.measure.figures import Figures
from powerlab.measure.percentiles.latency import TimedInferences

ROUNDING = 1e-9
"""Relative: machines add up sums in another order, and differ in the last of sixteen digits."""
ABSENT = "absent"
MOST_TOLD = 3
"""Differences of one thing that are told: a budget has dozens of lines."""


Parts = dict[str, float | str | None]
"""What one thing is made of, by name: a figure of its value and interval, a budget of its lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One thing a run says.

    Attributes:
        what: what it is, in words.
        stored: as the run says it, in words.
        recomputed: as the record gives it.
        equal: whether they are the same, to within rounding.
        detail: by how much they differ; empty where they do not.
    """

    what: str
    stored: str
    recomputed: str
    equal: bool
    detail: str = ""


def compared(run: Run, timed: TimedInferences, figures: Figures) -> tuple[Compared, ...]:
    """Hold everything a run says of itself against what its record gives."""
    return (
        _same("window", _window(run.window_ns), _window(timed.window_ns)),
        _same("inferences", str(run.inference_count), str(timed.count)),
        *compared_metrics(run.metrics, figures.metrics),
        *compared_budgets(run.budget, figures.budget),
        *_findings(run.findings, figures.findings),
        _same("verdict", run.verdict.value, figures.verdict.value),
    )


def _same(what: str, stored: str, recomputed: str) -> Compared:
    equal = stored == recomputed
    return Compared(
        what=what, stored=stored, recomputed=recomputed, equal=equal, detail="" if equal else "they are not the same"
    )


def _window(window_ns: tuple[int, int]) -> str:
    return f"{window_ns[0]} to {window_ns[1]} ns"


def compared_metrics(stored: Iterable[Metric], recomputed: Iterable[Metric]) -> Iterator[Compared]:
    """Compare figures by name: value, both ends of the interval, provenance."""
    was, now = {one.name: one for one in stored}, {one.name: one for one in recomputed}
    for name in [*was, *(name for name in now if name not in was)]:
        one, other = was.get(name), now.get(name)
        yield _numbers(
            METRICS[name].title if name in METRICS else name,
            METRICS[name].unit if name in METRICS else "",
            None if one is None else _parts(one),
            None if other is None else _parts(other),
        )


def _parts(metric: Metric) -> Parts:
    return {
        "value": metric.value,
        "lower end": metric.low,
        "upper end": metric.high,
        "provenance": metric.provenance.value,
    }


def compared_budgets(stored: Sequence[Contribution], recomputed: Sequence[Contribution]) -> Iterator[Compared]:
    """Compare uncertainty budgets, a figure's lines at a time."""
    """Compare the budget figure by figure: a line each would be a page."""
    for name in dict.fromkeys(line.metric for line in (*stored, *recomputed)):
        title = METRICS[name].title if name in METRICS else name
        was, now = _lines(stored, name), _lines(recomputed, name)
        yield _numbers(f"{title}: budget", "", was or None, now or None)


def _lines(budget: Iterable[Contribution], metric: str) -> Parts:
    found: Parts = {}
    for line in budget:
        if line.metric == metric:
            key = f"{line.origin} {line.effect} ({line.kind.value})"
            found[f"{key} #{sum(one.startswith(key) for one in found) + 1}" if key in found else key] = (
                line.standard_uncertainty
            )
    return found


def _numbers(
    what: str,
    unit: str,
    stored: Parts | None,
    recomputed: Parts | None,
) -> Compared:
    """Compare named numbers: of a figure its value and interval, of a budget its lines."""
    if stored is None or recomputed is None:
        return Compared(
            what=what,
            stored=_in_words(stored, unit),
            recomputed=_in_words(recomputed, unit),
            equal=False,
            detail="the record gives none" if recomputed is None else "the run does not have it",
        )
    apart = [
        difference
        for part in dict.fromkeys((*stored, *recomputed))
        if (difference := _difference(part, stored.get(part), recomputed.get(part)))
    ]
    return Compared(
        what=what,
        stored=_in_words(stored, unit),
        recomputed=_in_words(recomputed, unit),
        equal=not apart,
        detail=_first_few(apart),
    )


def _first_few(differences: Sequence[str]) -> str:
    rest = len(differences) - MOST_TOLD
    more = (f"and {rest} more",) if rest > 0 else ()
    return "; ".join((*differences[:MOST_TOLD], *more))


def _in_words(parts: Parts | None, unit: str) -> str:
    if parts is None:
        return ABSENT
    if "value" not in parts:
        return f"{len(parts)} lines"
    low, high = parts["lower end"], parts["upper end"]
    ends = "" if low is None or high is None else f" ({low:.6g} to {high:.6g})"
    return f"{parts['value']:.10g}{ends} {unit} {parts['provenance']}"


def _difference(part: str, stored: float | str | None, recomputed: float | str | None) -> str:
    """Return in words how two numbers differ; empty where they do not."""
    if not isinstance(stored, float | int) or not isinstance(recomputed, float | int):
        if stored == recomputed:
            return ""
        return f"{part}: {_one(stored)} is stored, {_one(recomputed)} comes out"
    if math.isclose(stored, recomputed, rel_tol=ROUNDING, abs_tol=1e-15):
        return ""
    share = f" ({100 * (stored - recomputed) / recomputed:+.3g} %)" if recomputed else ""
    return f"{part}: {stored:.10g} is stored, {recomputed:.10g} comes out{share}"


def _one(value: float | str | None) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else f"{value:.10g}"


def _findings(stored: Sequence[Finding], recomputed: Sequence[Finding]) -> Iterator[Compared]:
    """Compare what the rules said, rule by rule."""
    for rule in dict.fromkeys(finding.rule for finding in (*stored, *recomputed)):
        yield _same(f"finding {rule}", _said(stored, rule), _said(recomputed, rule))
    if not stored and not recomputed:
        yield _same("findings", "none", "none")


def _said(findings: Iterable[Finding], rule: str) -> str:
    """Return a rule's sentences; sorted, for a store keeps rails in an order of its own."""
    return "; ".join(sorted(f"{one.verdict}: {one.detail}" for one in findings if one.rule == rule)) or ABSENT
