"""Reboots into power modes that need one, and back: resumable steps, each stored before it is requested.

A step is tried at most three times and reboots the device at most once: a boot that comes up without the mode ends
the step, whose points then fail with that reason. The way back is tried at most three times. So no device boots for
ever, whatever its power modes do.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.domain.order import Stage
from powerlab.modes.reboot.return_note import ReturnNote
from powerlab.modes.reboot.transition import Rebooting, check_can_go
from powerlab.sweep.host import Host
from powerlab_agent.reboot_step import RebootStep
from powerlab_agent.spool import Spool

_log = logging.getLogger("powerlab.agent")
MAX_ATTEMPTS = 3
DOWN_S = 900.0
"""How long the server waits for a device that reboots."""
WAIT_S = 180.0
"""How long a device may take to end this process after it was asked to reboot."""
_POLL_S = 0.1


class RebootingError(Exception):
    """The device is going down, or has come up again: this life of the agent is over, and lets go of nothing."""


@dataclass(slots=True, kw_only=True)
class Reboots:
    """The reboots of one device.

    Attributes:
        spool: remembers the step.
        host: the device.
        stop: set when this process is told to stop, as it is when the device goes down.
        wait_s: see WAIT_S.
    """

    spool: Spool
    host: Host
    stop: threading.Event
    wait_s: float = WAIT_S
    _refused: dict[str, dict[str, str]] = field(default_factory=dict)
    """By sweep, what was refused before anything had to be written down."""

    def prepare(self, sweep_id: str) -> None:
        """Tell the host what an earlier boot has left of a sweep."""
        step = self.spool.reboot()
        if step is None or step.sweep_id != sweep_id:
            self.host.stages, self.host.refused = None, self._refused.get(sweep_id, {})
        else:
            self.host.stages, self.host.refused = step.stages, step.refused

    def go(self, sweep_id: str, stages: tuple[Stage, ...]) -> None:
        """Reboot into the first of the stages; returns where that is not to be had, and remembers why.

        Raises:
            RebootingError: the device reboots.
            SpoolUnwritableError: that cannot be written down, so nothing is asked.
        """
        target = stages[0].reboot_into
        if target is None:
            raise ValueError("a stage without a reboot")
        device = self._device()
        try:
            step = self.spool.reboot()
            if step is None:
                original = check_can_go(device, target)
                step = RebootStep(sweep_id=sweep_id, original=original, previous=device.settings())
            step = step.towards(sweep_id, stages)
            self.spool.keep_reboot(step)
            if step.attempts and step.requested_in_boot != device.boot_id():
                raise PowerlabError(f"after the reboot for it {device.missing(target) or 'it is not in force'}")
            self._return_note().keep(step.original, step.previous, target)
            self._ask(device, step, target)
        except PowerlabError as error:
            self._refuse(stages[0].modes, str(error).rstrip("."), sweep_id, stages)

    def return_home(self) -> None:
        """Take the device back to what it was before the first reboot, where it is not.

        Raises:
            RebootingError: the device reboots.
            PowerlabError: it does not come back to what it was, or may not be rebooted.
        """
        step = self.spool.reboot()
        if step is None:
            return
        device = self._device()
        if device.missing(step.original):
            self._reboot_home(device, step)
        device.put_back(step.previous)
        self._return_note().forget()
        self.spool.forget_reboot()
        _log.info("the device is back in the power mode that it was in before the first reboot")

    def away(self) -> str:
        """Return a sentence where the device is not in its own power mode, else nothing."""
        step = self.spool.reboot()
        if step is None:
            return ""
        return (
            f"The device goes back to {_name(self._device(), step.original)}, by a reboot, when the agent starts again."
        )

    def _reboot_home(self, device: Rebooting, step: RebootStep) -> None:
        name = _name(device, step.original)
        by_hand = f"set it with `sudo nvpmodel -m {step.original.value}`, reboot, and start the agent again"
        if not self.host.may_reboot:
            raise PowerlabError(
                f"the device was rebooted for a sweep and is not back in {name}, and this agent may not reboot it; "
                f"start it with --allow-reboot, or {by_hand}."
            )
        step = step if not step.stages else RebootStep(sweep_id="", original=step.original, previous=step.previous)
        try:
            self._ask(device, step, step.original)
        except PowerlabError as error:
            why = str(error).rstrip(".")
            raise PowerlabError(f"the device does not come back to {name}: {why}; {by_hand}.") from error

    def _ask(self, device: Rebooting, step: RebootStep, target: Setting) -> None:
        """Write down that the device is asked to reboot, ask it, and wait for it; returns where none was needed.

        Raises:
            RebootingError: it reboots.
            PowerlabError: it does not.
        """
        if step.attempts >= MAX_ATTEMPTS:
            raise PowerlabError(f"the device was asked {step.attempts} times to reboot for it, and it is not in force")
        boot_id = device.boot_id()
        self.spool.keep_reboot(step.asked_once_more(boot_id))
        _log.warning("the device is asked to go into %s, with a reboot where it takes one", _name(device, target))
        said = device.ask(target)
        if device.missing(target) is None:
            return
        deadline = time.monotonic() + self.wait_s
        while time.monotonic() < deadline:
            if device.boot_id() != boot_id or self.stop.wait(_POLL_S):
                raise RebootingError
        words = "; ".join(line.strip() for line in said.splitlines() if line.strip()) or "nothing"
        raise PowerlabError(f"the device did not reboot within {self.wait_s:g} s; nvpmodel said: {words}")

    def _refuse(self, modes: tuple[str, ...], why: str, sweep_id: str, stages: tuple[Stage, ...]) -> None:
        reason = f"{' and '.join(modes)} needs a reboot and cannot be had: {why}."
        _log.error("%s", reason)
        step = self.spool.reboot()
        if step is None:  # nothing was written, so there is nothing to come back from
            self._refused[sweep_id] = {**self._refused.get(sweep_id, {}), **dict.fromkeys(modes, reason)}
            return
        self.spool.keep_reboot(step.towards(sweep_id, stages).without(modes, reason))

    def _device(self) -> Rebooting:
        return Rebooting(self.host.sysroot, self.host.state_dir)

    def _return_note(self) -> ReturnNote:
        return ReturnNote(self.host.sysroot, self.host.state_dir)


def _name(device: Rebooting, setting: Setting) -> str:
    mode = device.mode_of(setting)
    return setting.value if mode is None else mode.name
