"""Several points made into one figure a block, so that sets of points can be compared as wholes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from powerlab.analysis.summary import MIN_VALID, sound_runs, usable_runs
from powerlab.domain.budget import of_metric
from powerlab.domain.quantity import Metric
from powerlab.domain.run import Contribution, Run, Verdict

Place = tuple[str, ...]
"""A point but for the dimensions in which sets are meant to differ."""
_START = "start_temperature_c"


def blocks_of(places: Mapping[Place, Sequence[Run]], name: str) -> list[Run]:
    """Return one run for each block: the geometric mean of a metric over some places, with its mean relative budget.

    Blocks that lack one of the places are left out. Where places are of different sweeps no block holds them all; then
    their first runs make the first one, and so on. Runs that no claim may rest on make blocks only where the others are
    fewer than :data:`MIN_VALID`, and those are flagged.
    """
    if not places:
        return []
    chosen, verdict = {place: sound_runs(runs, name) for place, runs in places.items()}, Verdict.VALID
    if any(len(runs) < MIN_VALID for runs in chosen.values()):
        chosen = {place: [run for run in usable_runs(runs) if run.metric(name)] for place, runs in places.items()}
        verdict = Verdict.FLAGGED
    by_block = [{(run.sweep_id, run.repeat): run for run in runs} for runs in chosen.values()]
    rows = [[runs[block] for runs in by_block] for block in by_block[0] if all(block in runs for runs in by_block)]
    if len(rows) < MIN_VALID <= min(map(len, chosen.values())):
        rows = [_apart(row, number) for number, row in enumerate(zip(*chosen.values(), strict=False))]
    return [replace(_mean(row, name), verdict=verdict, findings=()) for row in rows]


def _apart(row: Sequence[Run], number: int) -> list[Run]:
    """Return runs of different sweeps as a block that is paired with none of another set."""
    sweeps = "+".join(dict.fromkeys(run.sweep_id for run in row))
    return [replace(run, sweep_id=sweeps, repeat=number) for run in row]


def _mean(row: Sequence[Run], name: str) -> Run:
    """Return a run with the mean of some runs; without a figure where they cannot be put together."""
    figures = [metric for run in row if (metric := run.metric(name)) is not None]
    if len(row) == 1:
        return row[0]
    if len({figure.provenance for figure in figures}) > 1 or min(figure.value for figure in figures) <= 0:
        return replace(row[0], metrics=(), budget=())
    value = math.exp(fmean(math.log(figure.value) for figure in figures))
    below = fmean(0.0 if one.low is None else 1 - one.low / one.value for one in figures)
    above = fmean(0.0 if one.high is None else one.high / one.value - 1 for one in figures)
    mean = Metric(
        name=name, value=value, low=value * (1 - below), high=value * (1 + above), provenance=figures[0].provenance
    )
    return replace(row[0], metrics=(mean, *_temperature(row)), budget=_mean_budget(row, name, value))


def _temperature(row: Sequence[Run]) -> tuple[Metric, ...]:
    """Return how warm the runs began, as their mean; nothing where one does not say."""
    found = [metric for run in row if (metric := run.metric(_START)) is not None]
    return (replace(found[0], value=fmean(one.value for one in found)),) if len(found) == len(row) else ()


def _mean_budget(row: Sequence[Run], name: str, value: float) -> tuple[Contribution, ...]:
    """Return the mean of relative lines; a line that a run lacks is 0 there."""
    shares: dict[tuple[str, str], list[float]] = {}
    lines: dict[tuple[str, str], Contribution] = {}
    for run in row:
        figure = run.metric(name)
        if figure is None:
            continue
        for line in of_metric(run.budget, name):
            lines.setdefault((line.origin, line.effect), line)
            shares.setdefault((line.origin, line.effect), []).append(line.standard_uncertainty / figure.value)
    return tuple(
        replace(lines[key], standard_uncertainty=value * math.fsum(found) / len(row)) for key, found in shares.items()
    )
