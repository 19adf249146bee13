"""How much care a sweep takes: three levels that set a plan's times and counts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
    """

    duration_s: float
    min_inferences: int
    warm_up_s: float
    longest_warm_up_s: float
    idle_s: float
    cool_down_s: float
    repeats: int
    words: str


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
    ),
}
