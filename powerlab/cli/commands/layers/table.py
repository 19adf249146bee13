"""The table of a layer profile, for people, and the sentences below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from powerlab.analysis.roofline import Bound, RooflinePoint, ridge_flop_per_byte, roofline
from powerlab.cli.output.sweep_table import ABSENT, format_figure, format_number
from powerlab.domain.layers import Layer, LayerProfile, Whole
from powerlab.domain.quantity import Metric

_MOST_NOTES = 6
_COLUMNS = ("#", "layer", "kernel", "shape", "ms", "ms alone", "W", "mJ", "mJ above idle", "%", "GFLOP/s", "of roof")
_LEFT = frozenset({"layer", "kernel", "shape"})


def layer_table(profile: LayerProfile, optimizers: Sequence[str] = ()) -> Table:
    """Return a row a layer, then their sum and the whole; where it was trained, by the one of ``optimizers``."""
    threads = "1 thread" if profile.threads == 1 else f"{profile.threads} threads"
    title = f"{profile.model}, batch {profile.batch_size}, {threads}, mode {profile.mode}, {profile.tier}"
    title += "".join(f", trained by {optimizer}" for optimizer in optimizers)
    table = Table(title=Text(title), box=SIMPLE_HEAD, show_edge=False, padding=0, pad_edge=False)
    words = _provenances(profile)
    for name in _COLUMNS:
        heading = f"{name}\n{words[name]}" if words.get(name) else name
        least = max(len(word) for word in heading.split())
        table.add_column(heading, justify="left" if name in _LEFT else "right", min_width=least, overflow="fold")
    for layer, point in zip(profile.layers, roofline(profile), strict=True):
        table.add_row(*(Text(cell) for cell in _cells(layer, point)))
    table.add_section()
    for name, part in profile.total_of_parts.items():
        table.add_row(*_whole_cells(f"sum of {name}", part, _share_percent(part, profile), alone=False))
    shares = sum(layer.share_percent for layer in profile.layers)
    table.add_row(*_whole_cells("sum of layers", profile.total_of_layers, shares, alone=True))
    table.add_row(*_whole_cells("whole", profile.whole, 100.0, alone=False), style="bold")
    return table


def _provenances(profile: LayerProfile) -> dict[str, str]:
    """Return the word under a column's heading where all its figures share one."""
    figures = {
        "ms": profile.whole.time,
        "ms alone": profile.total_of_layers.time,
        "W": profile.whole.power,
        "mJ": profile.whole.energy,
        "mJ above idle": profile.whole.above_idle,
    }
    return {name: metric.provenance.value for name, metric in figures.items() if metric is not None}


def _cells(layer: Layer, point: RooflinePoint) -> tuple[str, ...]:
    return (
        str(layer.index),
        layer.name,
        layer.kernel.partition("_f32")[0],
        "x".join(map(str, layer.shape)),
        format_figure(layer.time),
        format_figure(layer.alone, interval=False),
        format_figure(layer.power),
        format_figure(_milli(layer.energy)),
        format_figure(_milli(layer.above_idle)),
        f"{layer.share_percent:.1f}",
        format_number(point.gflops, 3),
        ABSENT if point.percent_of_roof is None else f"{point.percent_of_roof:.0f} % {_bound(point)}",
    )


def _bound(point: RooflinePoint) -> str:
    return "mem" if point.bound is Bound.MEMORY else "cpu"


def _whole_cells(name: str, whole: Whole, percent: float, *, alone: bool) -> tuple[str, ...]:
    time = format_figure(whole.time)
    energies = (format_figure(_milli(metric)) for metric in (whole.energy, whole.above_idle))
    times = ("", time) if alone else (time, "")
    return ("", name, "", "", *times, format_figure(whole.power), *energies, f"{percent:.1f}", "", "")


def _share_percent(part: Whole, profile: LayerProfile) -> float:
    """Return a part's share of the whole's energy; of its time where there is no energy."""
    whole = profile.whole
    if part.energy is not None and whole.energy is not None:
        return 100 * part.energy.value / whole.energy.value
    return 100 * part.time.value / whole.time.value


def _milli(metric: Metric | None) -> Metric | None:
    """Return a figure in J in mJ."""
    if metric is None or metric.low is None or metric.high is None:
        return metric if metric is None else replace(metric, value=1e3 * metric.value)
    return replace(metric, value=1e3 * metric.value, low=1e3 * metric.low, high=1e3 * metric.high)


def layer_words(profile: LayerProfile) -> list[Text]:
    """Return what a reader must know beside the table."""
    lines = [*_power_words(profile), *_ratio_words(profile), _roof_words(profile)]
    said = [*profile.findings, *(finding for layer in profile.layers for finding in layer.findings)]
    counted = Counter((finding.verdict, finding.rule) for finding in said)
    examples = {(finding.verdict, finding.rule): finding.detail for finding in said}
    for (verdict, rule), count in counted.most_common(_MOST_NOTES):
        times = "once" if count == 1 else f"{count} times"
        lines.append(f"{verdict} ({rule}, {times}): {examples[verdict, rule].rstrip('.')}.")
    return [Text(line) for line in lines]


def _power_words(profile: LayerProfile) -> list[str]:
    if profile.total is None or profile.no_power:
        return [f"No joules: {profile.no_power}. The last columns share out the time."]
    idle = "no idle baseline" if profile.idle_power is None else f"{format_figure(profile.idle_power)} W when idle"
    return [
        f"Power is {' + '.join(profile.total.rails)}: {profile.total.scope}; {idle}.",
        "A layer's joules are its power, seen while it was repeated alone, for as long as it takes within an "
        "inference; % is its part of the whole's.",
    ]


def _ratio_words(profile: LayerProfile) -> list[str]:
    lines = []
    missing = sum(layer.energy is None for layer in profile.layers)
    if missing and not profile.no_power:
        lines.append(f"The layers' joules are not added up, because the power of {missing} of them may not be used.")
    elif profile.energy_ratio is None and not profile.no_power:
        lines.append("The layers' joules cannot be held against the whole's, because its power may not be used.")
    if profile.energy_ratio is not None:
        drawn = "a layer repeated alone does not draw quite what it draws within an inference"
        lines.append(
            f"The whole takes {format_figure(profile.energy_ratio)} times the energy of its layers"
            f"{_against_one(profile.energy_ratio, drawn)}."
        )
    cached = "caches hold other things for a layer that is repeated, or the machine was busy otherwise meanwhile"
    lines.append(
        f"The whole takes {format_figure(profile.time_ratio)} times as long as its layers when each is repeated alone"
        f"{_against_one(profile.time_ratio, cached)}."
    )
    return lines


def _against_one(ratio: Metric, otherwise: str) -> str:
    if ratio.low is None or ratio.high is None:
        return ""
    return ", which agrees with 1" if ratio.low <= 1 <= ratio.high else f", which is not 1: {otherwise}"


def _roof_words(profile: LayerProfile) -> str:
    if profile.roof is None:
        return f"No roofline: {profile.no_roof}."
    roof = profile.roof
    return (
        f"The roof, measured with the same threads: {roof.peak_gflops:.0f} GFLOP/s and {roof.memory_gb_per_s:.1f} "
        f"GB/s, which meet at {ridge_flop_per_byte(roof):.1f} FLOP/B; mem and cpu say which of them is above a layer."
    )
