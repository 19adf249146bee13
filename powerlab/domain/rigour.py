"""Rigour of a sweep: three levels that set a plan's times and counts.

The times and counts of ``publishable`` are those of MLPerf Inference's rules: 600 s, 1024 queries of a single stream,
and 24,576 images offline (``inference_rules.adoc``, section 3). The 270,336 queries that its first versions asked of
the server and multi-stream scenarios were 3.75 hours on a board that answers 20 a second; since early stopping was
allowed, 662 queries that hold a bound prove it of the 99th percentile.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from powerlab.domain.workload import Scenario, Workload


class Rigour(StrEnum):
    """A level by name."""

    QUICK = "quick"
    STANDARD = "standard"
    PUBLISHABLE = "publishable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What a level asks for, unless the plan says otherwise; attributes as in the sweep plan.

    Attributes:
        words: what the level is for, in one phrase.
        offline_images: images of a run of the offline scenario, at least.
    """

    duration_s: float
    min_inferences: int
    warm_up_s: float
    longest_warm_up_s: float
    idle_s: float
    cool_down_s: float
    repeats: int
    words: str
    offline_images: int = 0


LEVELS: dict[Rigour, Level] = {
    Rigour.QUICK: Level(
        duration_s=5.0,
        min_inferences=10,
        warm_up_s=1.0,
        longest_warm_up_s=10.0,
        idle_s=2.0,
        cool_down_s=0.0,
        repeats=3,
        words="seconds a point, for a first look",
    ),
    Rigour.STANDARD: Level(
        duration_s=60.0,
        min_inferences=100,
        warm_up_s=5.0,
        longest_warm_up_s=120.0,
        idle_s=15.0,
        cool_down_s=120.0,
        repeats=3,
        words="a minute a run, for decisions",
    ),
    Rigour.PUBLISHABLE: Level(
        duration_s=600.0,
        min_inferences=1024,
        warm_up_s=30.0,
        longest_warm_up_s=600.0,
        idle_s=60.0,
        cool_down_s=600.0,
        repeats=3,
        words="ten minutes a run, as MLPerf asks",
        offline_images=24_576,
    ),
}

TIMES_AND_COUNTS = {
    "duration_s": ("duration", " s"),
    "min_inferences": ("minimum count of inferences", ""),
    "warm_up_s": ("warm-up", " s"),
    "longest_warm_up_s": ("longest warm-up", " s"),
    "idle_s": ("idle baseline", " s"),
    "cool_down_s": ("cool-down", " s"),
    "repeats": ("count of repeats", ""),
}
"""What a level sets, with its name in sentences and its unit."""


def least_inferences(rigour: Rigour, min_inferences: int, workload: Workload) -> int:
    """Return how many inferences a run holds, at least: a plan's own count, or what its level asks of the scenario."""
    images = LEVELS[rigour].offline_images if workload.scenario is Scenario.OFFLINE else 0
    return max(min_inferences, math.ceil(images / workload.batch_size))


def falls_short(rigour: Rigour, given: Mapping[str, float]) -> str:
    """Say by which of its times and counts a plan does not deserve a level's name; empty where it does.

    ``quick`` asks for nothing: it is the name of whatever is less than ``standard``.

    Args:
        rigour: the level that the plan claims.
        given: the plan's times and counts by their names in :class:`Level`.
    """
    if rigour is Rigour.QUICK:
        return ""
    short = (
        f"the {title} is {given[name]:g}{unit}, not {getattr(LEVELS[rigour], name):g}{unit}"
        for name, (title, unit) in TIMES_AND_COUNTS.items()
        if given[name] < getattr(LEVELS[rigour], name)
    )
    return next(short, "")
