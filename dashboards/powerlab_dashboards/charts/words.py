"""Wording shared by charts: the provenance of figures, and why one is missing."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import METRICS, POWER_FIGURES
from powerlab_dashboards.language import gettext as _


def provenance_words(summaries: Sequence[PointSummary], metric_name: str) -> str:
    """Return ``measured``, or ``estimated and measured`` if both kinds are shown."""
    found = {metric.provenance.value for summary in summaries if (metric := summary.metric(metric_name)) is not None}
    return _(" and ").join(_(word) for word in sorted(found))


def why_missing(summary: PointSummary | None, metric_name: str) -> str:
    """Return why a point lacks a figure, in two or three words on two lines; empty if it has one."""
    if summary is None:
        return _("not run")
    if summary.metric(metric_name) is not None:
        return ""
    if not summary.metrics:
        return _("no usable<br>runs")
    return _("no power") if metric_name in POWER_FIGURES else _("no figure")


def no_figures(summaries: Sequence[PointSummary]) -> str:
    """Return a sentence on why a sweep has no figures."""
    if summaries:
        return _("No run of this sweep is usable; the list of runs shows why.")
    return _("No runs have finished yet.")


def missing_power(summaries: Sequence[PointSummary]) -> str:
    """Return a sentence on why there are no power figures."""
    if all(not summary.metrics for summary in summaries):
        return no_figures(summaries)
    return _("Power was not measured on this device; the devices page shows why and what to do about it.")


def no_metric(summaries: Sequence[PointSummary], name: str) -> str:
    """Return a sentence on why a sweep has no figures of one kind."""
    if name in POWER_FIGURES or all(not summary.metrics for summary in summaries):
        return missing_power(summaries)
    return _("No run of this sweep has the figure “%(title)s”; choose another one.", title=_(METRICS[name].title))
