"""Power and energy of each rail from a tegrastats log, without trusting its wall-clock dates.

Lines follow each other at the program's interval. Their dates are whole seconds of a wall clock that may be set, so
they only serve to find the true interval, over parts in which they run on evenly; where they jump, the log is split.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import numpy as np

from powerlab.domain.coverage import half_width_95
from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Rail, RailQuantity, Trace
from powerlab.domain.quantity import Provenance
from powerlab.measure.energy.rail import rail_energy
from powerlab.power.sources.tegrastats import OFFSET_STEPS, RELATIVE_ERROR, Line, parse_line, power_step_w

_JUMP_STEPS, _JUMP_S = 3.0, 2.0
"""Dates further apart than that many usual steps and seconds, or running backwards, are a jump."""
_TRUSTED_SPAN_S = 10.0
"""A part whose dates span less is timed by the stated interval, for a date is up to a second off."""
_DATE_ERROR_S = 1 / math.sqrt(3)
"""Standard uncertainty of the time between two dates that are both cut to whole seconds: the bound, a second, as the
half-width of a rectangle, as every bound here is taken; it averages out over nothing."""
_WORTH_SAYING = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Lines whose dates run on evenly, or all lines where there are no dates.

    Attributes:
        lines: what they say.
        interval_s: the time between two lines.
        dated: whether the interval comes from dates, and is uncertain as they are.
    """

    lines: Sequence[Line]
    interval_s: float
    dated: bool

    @property
    def duration_s(self) -> float:
        """From the first line to the last."""
        return self.interval_s * (len(self.lines) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RailFigures:
    """One rail over the log; energy is that between each part's first and last line, with its 95 % interval."""

    mean_w: float
    min_w: float
    max_w: float
    energy_j: float
    low_j: float
    high_j: float
    readings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a log says.

    Attributes:
        parts: the log between its clock's jumps.
        rails: figures by rail, in the order of the first line that has it.
        skipped: how many lines are none of tegrastats'.
        notes: sentences on what is not as it should be.
    """

    parts: Sequence[Part]
    rails: dict[str, RailFigures]
    skipped: int
    notes: tuple[str, ...]


def summarise_log(lines: Iterable[str], interval_s: float | None) -> Summary:
    """Summarise a log.

    Args:
        lines: its lines.
        interval_s: the ``--interval`` tegrastats was run with, in s; None where nobody knows.

    Raises:
        PowerlabError: no line has a rail, or there is no telling how far apart the lines are.
    """
    read: list[Line] = []
    skipped = 0
    for text in lines:
        try:
            read.append(parse_line(text))
        except ValueError:
            skipped += bool(text.strip())
    if not any(line.rails_w for line in read):
        raise PowerlabError(
            "no line has a rail; record with `sudo tegrastats`, because some boards show rails to root only."
        )
    notes: list[str] = []
    parts = [_timed(lines, interval_s, notes) for lines in _split(read, interval_s, notes)]
    names = dict.fromkeys(name for line in read for name in line.rails_w)
    return Summary(
        parts=parts, rails={name: _figures(name, names, parts) for name in names}, skipped=skipped, notes=tuple(notes)
    )


def _split(lines: list[Line], interval_s: float | None, notes: list[str]) -> list[list[Line]]:
    """Split where the dates jump; lines of which only some have dates are taken as having none."""
    dates = [line.date for line in lines if line.date is not None]
    if len(dates) < len(lines):
        if dates:
            notes.append(f"only {len(dates)} of {len(lines)} lines have a date, so no date is used")
        return [[Line(line.rails_w, line.temperatures_c) for line in lines]]
    steps_s = [(after - before).total_seconds() for before, after in pairwise(dates)]
    usual_s = interval_s if interval_s is not None else statistics.median(steps_s) if steps_s else 0.0
    parts = [lines[:1]]
    for step_s, (before, after), line in zip(steps_s, pairwise(dates), lines[1:], strict=True):
        if 0 <= step_s <= _JUMP_STEPS * usual_s + _JUMP_S:
            parts[-1].append(line)
            continue
        notes.append(
            f"the dates jump by {step_s:+g} s, from {before} to {after}: the log is split there, and what happened "
            "between is in no figure"
        )
        parts.append([line])
    return parts


def _timed(lines: list[Line], stated_s: float | None, notes: list[str]) -> Part:
    """Find how far apart a part's lines are."""
    span_s = _span_s(lines[0].date, lines[-1].date)
    if stated_s is not None and span_s < _TRUSTED_SPAN_S:
        return Part(lines=lines, interval_s=stated_s, dated=False)
    if len(lines) == 1:
        return Part(lines=lines, interval_s=0.0, dated=False)
    if span_s <= 0:
        raise PowerlabError(
            "the log has no dates that tell how far apart its lines are; say it with --interval-ms, 1000 where "
            "tegrastats was run without --interval."
        )
    found_s = span_s / (len(lines) - 1)
    if stated_s is not None and abs(found_s / stated_s - 1) > _WORTH_SAYING + 1 / span_s:
        notes.append(f"by their dates the lines are {found_s:.3g} s apart, not {stated_s:.3g} s: the dates are used")
    return Part(lines=lines, interval_s=found_s, dated=True)


def _span_s(first: datetime | None, last: datetime | None) -> float:
    return 0.0 if first is None or last is None else (last - first).total_seconds()


def _figures(name: str, names: Collection[str], parts: Sequence[Part]) -> RailFigures:
    values_w = [line.rails_w[name] for part in parts for line in part.lines if name in line.rails_w]
    mean_w = statistics.fmean(values_w)
    energy_j = gain_j = other_j = time_j = 0.0
    for part in parts:
        trace = _trace(name, power_step_w(name, names), part)
        if len(trace.time_ns) < 2:
            continue
        found = rail_energy(trace, int(trace.time_ns[0]), int(trace.time_ns[-1]))
        energy_j += found.energy_j
        gain_j += found.gain_j
        other_j += found.independent_j
        if part.dated:
            duration_s = float(trace.time_ns[-1] - trace.time_ns[0]) / 1e9
            time_j = math.hypot(time_j, found.energy_j / duration_s * _DATE_ERROR_S)
    half_width_j = half_width_95(math.hypot(gain_j, other_j, time_j), gain_j)
    return RailFigures(
        mean_w=mean_w,
        min_w=min(values_w),
        max_w=max(values_w),
        energy_j=energy_j,
        low_j=max(0.0, energy_j - half_width_j),
        high_j=energy_j + half_width_j,
        readings=len(values_w),
    )


def _trace(name: str, step_w: float, part: Part) -> Trace:
    rail = Rail(
        source="tegrastats",
        name=name,
        quantity=RailQuantity.POWER,
        resolution=step_w,
        relative_error=RELATIVE_ERROR,
        update_period_s=part.interval_s,
        provenance=Provenance.MEASURED,
        offset=OFFSET_STEPS * step_w,
    )
    found = [(index, line.rails_w[name]) for index, line in enumerate(part.lines) if name in line.rails_w]
    return Trace(
        rail=rail,
        time_ns=np.array([round(index * part.interval_s * 1e9) for index, _ in found], dtype=np.int64),
        value=np.array([value_w for _, value_w in found], dtype=np.float64),
    )
