"""The phases of a sweep on a device, and during which of them nothing else may be done there."""

from __future__ import annotations

from enum import StrEnum


class RunPhase(StrEnum):
    """What a sweep is doing.

    *Preparing* is everything before the first run: models are tried, sensors are calibrated. *Between runs* power modes
    are set and results uploaded.
    """

    PREPARING = "preparing"
    LOADING = "loading"
    COOLING = "cooling"
    IDLE = "idle"
    WARM_UP = "warm-up"
    TIMED = "timed"
    BETWEEN = "between"


QUIET = frozenset({RunPhase.PREPARING, RunPhase.IDLE, RunPhase.TIMED})
"""Phases in which power is measured for a figure: meanwhile nothing is read or sent for people who watch."""
