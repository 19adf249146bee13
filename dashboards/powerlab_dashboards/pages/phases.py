"""What pages call the phases of a sweep."""

from __future__ import annotations

from collections.abc import Mapping

from powerlab.domain.phase import RunPhase
from powerlab_dashboards.language import mark

PHASE_WORDS: Mapping[RunPhase, str] = {
    RunPhase.PREPARING: mark("preparing"),
    RunPhase.LOADING: mark("loading the model"),
    RunPhase.COOLING: mark("cooling down"),
    RunPhase.IDLE: mark("idle baseline"),
    RunPhase.WARM_UP: mark("warming up"),
    RunPhase.TIMED: mark("timed"),
    RunPhase.BETWEEN: mark("between runs"),
}
