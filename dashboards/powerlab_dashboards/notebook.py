"""The dashboard's charts as Plotly figures for notebooks.

::

    from powerlab_dashboards.notebook import figure

    figure("heatmap", "sweep.json")
    figure("power-trace", "http://server:8765", "4f0c2a")

A source is what :mod:`powerlab.frames` reads; it needs the same extra, ``frames``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from powerlab.analysis.summary import PointSummary
from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.domain.layers import LayerProfile
from powerlab.frames.frame import needed
from powerlab.frames.opening import Source, chosen_profiles, chosen_sweeps, opened
from powerlab.sources import source as stored
from powerlab.sources.identifiers import run_id as whole_run_id
from powerlab_dashboards.charts.base import Chart, NoChart
from powerlab_dashboards.charts.registry import LAYER_CHARTS, RUN_CHARTS, SWEEP_CHARTS
from powerlab_dashboards.charts.run_traces import RunTraces
from powerlab_dashboards.charts.theme import THEMES, View

if TYPE_CHECKING:
    from plotly.graph_objects import Figure  # type: ignore[import-untyped]

T = TypeVar("T")


def figure(
    name: str, source: Source = None, of: str | None = None, *, theme: str = "light", narrow: bool = False
) -> Figure:
    """Return a chart as a Plotly figure.

    Args:
        name: the chart, as its address on the dashboard has it, such as ``pareto-front`` or ``power-trace``.
        source: where to read.
        of: the identifier of the sweep, run or layer profile that the chart shows; of a sweep or profile it may be
            left out where the source has one only.
        theme: ``light`` or ``dark``.
        narrow: whether small multiples are stacked instead of beside each other.

    Raises:
        PowerlabError: there is no such chart or theme, the source has not got what the chart shows, or there is nothing
            to draw; the sentence says why.
    """
    chart, load = _chart(name)
    if theme not in THEMES:
        raise PowerlabError(f"there is no theme {theme!r}; choose from: {', '.join(THEMES)}.")
    plotly = needed("plotly.graph_objects")
    with opened(source) as stored_results:
        drawn = chart.build(load(stored_results, of), View(theme=THEMES[theme], narrow=narrow))
    if isinstance(drawn, NoChart):
        raise PowerlabError(f"there is no chart {name} to draw: {drawn.reason}")
    found: Figure = plotly.Figure(drawn)
    return found.update_layout(template="none")


def _chart(name: str) -> tuple[Chart[Any], Callable[[stored.Source, str | None], object]]:
    """Return a chart, and what loads the data that it shows."""
    for charts, load in ((SWEEP_CHARTS, _summaries), (RUN_CHARTS, _traces), (LAYER_CHARTS, _profile)):
        if name in charts:
            return charts[name], load
    known = [*SWEEP_CHARTS, *RUN_CHARTS, *LAYER_CHARTS]
    raise PowerlabError(f"there is no chart {name!r}{meant(name, known)}; choose from: {', '.join(known)}.")


def _summaries(source: stored.Source, sweep_id: str | None) -> Sequence[PointSummary]:
    found = _only(chosen_sweeps(source, sweep_id), "sweeps")
    return source.summaries(found.id)


def _profile(source: stored.Source, profile_id: str | None) -> LayerProfile:
    return _only(chosen_profiles(source, profile_id), "layer profiles")


def _traces(source: stored.Source, run_id: str | None) -> RunTraces:
    if run_id is None:
        raise PowerlabError("the chart shows one run; give its identifier as the third argument.")
    found = whole_run_id(source, run_id)
    return RunTraces(run=source.run(found), traces=tuple(source.recorded(found)))


def _only(found: Sequence[T], what: str) -> T:
    if len(found) != 1:
        raise PowerlabError(f"the source has {len(found)} {what}; give the identifier of one as the third argument.")
    return found[0]
