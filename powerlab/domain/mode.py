"""Power modes: named sets of knob settings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

CURRENT_MODE_NAME = "current"


class ModeOrigin(StrEnum):
    """Who defined a power mode."""

    VENDOR = "vendor"
    INVENTED = "invented"
    CURRENT = "current"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One knob's value: ``knob`` is its name in the registry, ``target`` which of its parts, ``value`` as written."""

    knob: str
    target: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerMode:
    """A named set of knob settings.

    Attributes:
        name: unique on its device, for example ``MAXN``, ``governor=powersave`` or ``current``.
        settings: applied in order; empty for the mode that changes nothing.
        origin: vendor, invented or current.
        requires_reboot: the vendor says the mode only takes effect after a reboot.
        online_cores: cores that are online in this mode; None where the mode does not say.
        description: one line for people.
    """

    name: str
    settings: tuple[Setting, ...] = ()
    origin: ModeOrigin = ModeOrigin.VENDOR
    requires_reboot: bool = False
    online_cores: int | None = None
    description: str = ""


CURRENT_MODE = PowerMode(
    name=CURRENT_MODE_NAME, origin=ModeOrigin.CURRENT, description="the current settings, unchanged"
)


def reboot_command(mode: PowerMode) -> str:
    """Return what a user types to get into a mode that needs a reboot."""
    number = next((setting.value for setting in mode.settings if setting.target == "mode"), "ID")
    return f"sudo nvpmodel -m {number}"
