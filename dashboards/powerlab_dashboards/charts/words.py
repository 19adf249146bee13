"""What charts say in words: where figures come from, and why one is missing."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.analysis.summary import PointSummary


def provenance_words(summaries: Sequence[PointSummary], metric_name: str) -> str:
    """Return ``measured``, or ``estimated and measured`` where figures of both kinds are shown side by side."""
    found = {metric.provenance.value for summary in summaries if (metric := summary.metric(metric_name)) is not None}
    return " and ".join(sorted(found))


def why_missing(summary: PointSummary | None, metric_name: str) -> str:
    """Return why a point has no such figure, in two or three words on two lines; the empty text where it has one."""
    if summary is None:
        return "not run"
    if summary.metric(metric_name) is not None:
        return ""
    if not summary.metrics:
        return "no usable<br>run"
    return "no power"


def no_figures(summaries: Sequence[PointSummary]) -> str:
    """Return one sentence on why a sweep has no figures at all."""
    return "No run of this sweep could be used; the list of runs says why." if summaries else "No run has finished yet."


def missing_power(summaries: Sequence[PointSummary]) -> str:
    """Return one sentence on why no power figure can be shown."""
    if all(not summary.metrics for summary in summaries):
        return no_figures(summaries)
    return "Power was not measured on this device; the devices page says why, and what to do about it."
