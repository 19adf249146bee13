"""Bounds that an operating point must keep, and whether a figure with its 95 % interval keeps one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from powerlab.analysis.operating_point.quantities import (
    CELSIUS,
    DECIBELS,
    IMAGES_PER_SECOND,
    MEGABYTES,
    MILLISECONDS,
    PERCENT,
    WATTS,
    Units,
    parse_quantity,
)
from powerlab.domain.quantity import METRICS, Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundKind:
    """Something that can be bounded.

    Attributes:
        metric: a key of :data:`powerlab.domain.quantity.METRICS`.
        units: those it may be given in, the metric's own first.
        example: a bound as it may be typed.
        words: what is bounded, in a sentence.
        at_least: whether the bound is a least value; else it is a highest one.
        fp32_keeps: whether points in fp32 keep it by definition, because the figure is a comparison with fp32.
    """

    metric: str
    units: Units
    example: str
    words: str
    at_least: bool = False
    fp32_keeps: bool = False


BOUND_KINDS: dict[str, BoundKind] = {
    "p99": BoundKind(metric="latency_p99_ms", units=MILLISECONDS, example="30ms", words="99th percentile latency"),
    "power": BoundKind(metric="power_w", units=WATTS, example="10W", words="power while running"),
    "throughput": BoundKind(
        metric="throughput_img_per_s", units=IMAGES_PER_SECOND, example="25/s", words="throughput", at_least=True
    ),
    "memory": BoundKind(metric="peak_memory_mb", units=MEGABYTES, example="1GB", words="peak memory"),
    "temperature": BoundKind(
        metric="end_temperature_c", units=CELSIUS, example="70C", words="temperature at the end of a run"
    ),
    "sqnr": BoundKind(
        metric="output_sqnr_db",
        units=DECIBELS,
        example="30dB",
        words="signal to quantisation noise of the outputs",
        at_least=True,
        fp32_keeps=True,
    ),
    "accuracy": BoundKind(
        metric="top1_accuracy_percent",
        units=PERCENT,
        example="90%",
        words="top-1 accuracy on labelled images",
        at_least=True,
    ),
    "agreement": BoundKind(
        metric="top1_agreement_percent",
        units=PERCENT,
        example="99%",
        words="top-1 agreement with fp32",
        at_least=True,
        fp32_keeps=True,
    ),
}
"""Everything that can be bounded, by the name of its option and its query parameter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One bound.

    Attributes:
        name: a key of :data:`BOUND_KINDS`.
        limit: in the metric's unit.
    """

    name: str
    limit: float

    @property
    def kind(self) -> BoundKind:
        """What is bounded."""
        return BOUND_KINDS[self.name]

    @property
    def words(self) -> str:
        """The bound in words: ``99th percentile latency of at most 30 ms``."""
        side = "at least" if self.kind.at_least else "at most"
        return f"{self.kind.words} of {side} {self.limit:g} {METRICS[self.kind.metric].unit}"


class Fit(StrEnum):
    """Whether a figure keeps a bound."""

    KEPT = "kept"
    OPEN = "open"
    MISSED = "missed"
    NO_FIGURE = "no figure"


def parse_bounds(given: Mapping[str, str | None]) -> tuple[Bound, ...]:
    """Return the bounds that are given, by their names and as they were typed; None is none.

    Raises:
        PowerlabError: one of them makes no sense.
    """
    return tuple(
        Bound(name=name, limit=parse_quantity(name, text, kind.units, kind.example))
        for name, kind in BOUND_KINDS.items()
        if (text := given.get(name)) is not None
    )


def fit_of(figure: Metric | None, bound: Bound) -> Fit:
    """Return whether a figure keeps a bound: with its whole interval it does, with none of it it does not.

    Between the two it is open, and so is a figure without an interval that would keep it.
    """
    if figure is None:
        return Fit.NO_FIGURE
    kept = overshoot(figure.value, bound) <= 0
    if figure.low is None or figure.high is None:
        return Fit.OPEN if kept else Fit.MISSED
    ends = [overshoot(end, bound) for end in (figure.low, figure.high)]
    if max(ends) <= 0:
        return Fit.KEPT
    return Fit.MISSED if min(ends) > 0 else Fit.OPEN


def overshoot(value: float, bound: Bound) -> float:
    """Return by how much a value misses a bound, in the metric's unit; 0 or less where it keeps it."""
    return bound.limit - value if bound.kind.at_least else value - bound.limit
