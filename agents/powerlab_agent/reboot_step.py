"""The step of a reboot that an agent stores across it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from powerlab.domain.mode import Setting
from powerlab.domain.order import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootStep:
    """One reboot of a device, written down before it is requested.

    Attributes:
        sweep_id: the sweep that wants it.
        original: the setting that the device was kept in before the first of them.
        previous: all other settings then, in the order in which to write them back.
        stages: what is left of the sweep, the first being where the device goes or is; none while it goes back.
        requested_in_boot: id of the boot in which the reboot was last requested; empty before.
        attempts: how often it was requested.
        refused: power modes that could not be set, and why.
    """

    sweep_id: str
    original: Setting
    previous: tuple[Setting, ...]
    stages: tuple[Stage, ...] = ()
    requested_in_boot: str = ""
    attempts: int = 0
    refused: dict[str, str] = field(default_factory=dict)

    def towards(self, sweep_id: str, stages: tuple[Stage, ...]) -> RebootStep:
        """Return the step that leads to the first of these stages: this one, or the next one, not yet asked for."""
        if (sweep_id, stages[:1]) == (self.sweep_id, self.stages[:1]):
            return self
        refused = self.refused if sweep_id == self.sweep_id else {}
        return replace(self, sweep_id=sweep_id, stages=stages, requested_in_boot="", attempts=0, refused=refused)

    def asked_once_more(self, boot_id: str) -> RebootStep:
        """Return the step as it is to be written down before the device is asked."""
        return replace(self, requested_in_boot=boot_id, attempts=self.attempts + 1)

    def without(self, modes: tuple[str, ...], reason: str) -> RebootStep:
        """Return the step with the reason for which modes cannot be had."""
        return replace(self, refused={**self.refused, **dict.fromkeys(modes, reason)})
