"""Wording shared by charts: the provenance of figures, and why one is missing."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.analysis.summary import PointSummary


def provenance_words(summaries: Sequence[PointSummary], metric_name: str) -> str:
    """Return ``measured``, or ``estimated and measured`` if both kinds are shown."""
    found = {metric.provenance.value for summary in summaries if (metric := summary.metric(metric_name)) is not None}
    return " and ".join(sorted(found))


def why_missing(summary: PointSummary | None, metric_name: str) -> str:
    """Return why a point lacks a figure, in two or three words on two lines; empty if it has one."""
    if summary is None:
        return "not run"
    if summary.metric(metric_name) is not None:
        return ""
    if not summary.metrics:
        return "no usable<br>runs"
    return "no power"


def no_figures(summaries: Sequence[PointSummary]) -> str:
    """Return a sentence on why a sweep has no figures."""
    return "No run of this sweep is usable; the list of runs shows why." if summaries else "No runs have finished yet."


def missing_power(summaries: Sequence[PointSummary]) -> str:
    """Return a sentence on why there are no power figures."""
    if all(not summary.metrics for summary in summaries):
        return no_figures(summaries)
    return "Power was not measured on this device; the devices page shows why and what to do about it."
