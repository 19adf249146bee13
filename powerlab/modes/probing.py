"""Result of probing a knob."""

from __future__ import annotations

from powerlab.domain.power import Availability
from powerlab.modes.base import KnobProbe

AS_ROOT = (
    "run powerlab as root (sudo), start the privileged helper (docs/boards.md), or mount /sys writable in a container"
)


def available(knob: str, detail: str) -> KnobProbe:
    """It is there and can be turned."""
    return KnobProbe(knob=knob, availability=Availability.AVAILABLE, detail=detail)


def absent(knob: str, detail: str, remedy: str = "") -> KnobProbe:
    """It is not there, which may be how the device is made."""
    return KnobProbe(knob=knob, availability=Availability.ABSENT, detail=detail, remedy=remedy)


def denied(knob: str, detail: str, remedy: str = AS_ROOT) -> KnobProbe:
    """It is there, and this user may not turn it."""
    return KnobProbe(
        knob=knob, availability=Availability.DENIED, detail=f"{detail}; this user may not change it", remedy=remedy
    )


def broken(knob: str, detail: str, remedy: str) -> KnobProbe:
    """It is there and does not work."""
    return KnobProbe(knob=knob, availability=Availability.BROKEN, detail=detail, remedy=remedy)
