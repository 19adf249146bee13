"""Checks of what an agent needs: ``powerlab agent check``, also run at every start of an agent."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from powerlab.atomic_file import write_whole
from powerlab.domain.device import SelfCheck
from powerlab.domain.errors import PowerlabError
from powerlab.domain.temperature import TemperatureLimits
from powerlab.modes.reboot.return_note import ReturnNote
from powerlab.privileged import client as helper
from powerlab.throttling.temperatures import watched_zones
from powerlab_agent.client import Client, ServerUnreachableError
from powerlab_agent.clock import ServerClock
from powerlab_agent.room import Limits, free_bytes, in_words

if TYPE_CHECKING:
    from powerlab.sweep.host import Host

MAX_CLOCK_OFFSET_S = 1.0
"""Dates of runs are written in ms and read by people; power and latency have clocks of their own."""


class _NotPassedError(Exception):
    """What is wrong, and how to fix it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What the checks look at."""

    state: Path
    limits: Limits
    client: Client
    host: Host


def check_self(checked: Checked) -> Iterator[SelfCheck]:
    """Yield what came of every check, in the order of :data:`CHECKS`."""
    for name, (_, look) in CHECKS.items():
        try:
            yield SelfCheck(name=name, passed=True, detail=look(checked))
        except (_NotPassedError, PowerlabError, ServerUnreachableError) as error:
            yield SelfCheck(name=name, passed=False, detail=str(error))


def _state(checked: Checked) -> str:
    place = checked.state / "check"
    try:
        write_whole(place, b"written by powerlab agent check\n")
        place.unlink()
    except OSError as error:
        raise _NotPassedError(
            f"{checked.state} cannot be written ({error.strerror}); make it this user's, or give another --state."
        ) from error
    return f"{checked.state} can be written."


def _disk(checked: Checked) -> str:
    wanted = checked.limits.reserve_bytes
    try:
        free = free_bytes(checked.state)
    except OSError as error:
        raise _NotPassedError(
            f"the disk of {checked.state} cannot be queried for free space ({error.strerror})."
        ) from error
    if free < wanted:
        raise _NotPassedError(
            f"{in_words(free)} are free on the disk of {checked.state}, and {in_words(wanted)} are wanted, so traces of"
            " runs will be shed; free some space."
        )
    return f"there is more than {in_words(wanted)} of room on the disk of {checked.state}."


def _server(checked: Checked) -> str:
    try:
        checked.client.time()
    except ServerUnreachableError as error:
        raise _NotPassedError(f"{error}; check that it runs, and the network on the way to it.") from error
    return "the server answers."


def _token(checked: Checked) -> str:
    return f"the server knows this device as {checked.client.who_am_i().device.name}."


def _clock(checked: Checked) -> str:
    clock = ServerClock(checked.client.time)
    clock.refresh_if_due()
    found = clock.offset()
    if found is None:
        raise _NotPassedError("how this clock stands to the server's is unknown, because the server does not answer.")
    if abs(found.offset_s) - found.uncertainty_s > MAX_CLOCK_OFFSET_S:
        way = "behind" if found.offset_s > 0 else "ahead of"
        raise _NotPassedError(
            f"this clock is {abs(found.offset_s):.3g} s {way} the server's; let both follow a time server"
            " (`timedatectl set-ntp true`)."
        )
    return f"this clock agrees with the server's to within {MAX_CLOCK_OFFSET_S:g} s."


def _sensors(checked: Checked) -> str:
    total = checked.host.capabilities().total
    if total is None:
        raise _NotPassedError("no power sensor can be read, so runs have no watts; `powerlab doctor` says what to do.")
    if total.too_low:
        raise _NotPassedError(f"the board's power is {total.scope}; `powerlab doctor` says what to do.")
    return f"the board's power is read from {' + '.join(total.rails)}."


def _modes(checked: Checked) -> str:
    left = checked.host.controller.unrestored()
    if left is not None:
        raise _NotPassedError(
            f"the power mode {left.mode} was set and has not been restored yet; unless a sweep runs now, run"
            " `powerlab modes restore`."
        )
    if away := ReturnNote(checked.host.sysroot, checked.host.state_dir).words():
        raise _NotPassedError(away)
    return "no power mode is left to restore."


def _helper(checked: Checked) -> str:
    sysroot = checked.host.sysroot
    if sysroot.simulated:
        return "a simulated board needs no privileged helper."
    if os.geteuid() == 0:
        return "this user is root and needs no privileged helper."
    if not helper.is_there(sysroot):
        raise _NotPassedError(
            "no privileged helper listens, so modes that only root may set and sensors that only root may read are"
            " missing; start powerlab-helper.socket."
        )
    return "the privileged helper listens."


def _temperature(checked: Checked) -> str:
    zones, limits = watched_zones(checked.host.sysroot), checked.host.temperature_limits
    if zones:
        return f"temperatures are read from {', '.join(zones)}; {_held(limits)}."
    if limits:
        raise _NotPassedError(
            f"no temperature sensor can be read, so the guard cannot watch that {limits}, and every sweep fails; start "
            "the agent without limits of temperatures, or see `powerlab doctor`."
        )
    return f"no temperature sensor can be read: the guard cannot watch; {_held(limits)}."


def _held(limits: TemperatureLimits) -> str:
    return f"here {limits}" if limits else "this agent has no limit of its own"


CHECKS: dict[str, tuple[int, Callable[[Checked], str]]] = {
    "state": (10, _state),
    "disk": (11, _disk),
    "server": (12, _server),
    "token": (13, _token),
    "clock": (14, _clock),
    "sensors": (15, _sensors),
    "modes": (16, _modes),
    "helper": (17, _helper),
    "temperature": (18, _temperature),
}
"""By name, the exit status of ``powerlab agent check`` where it is the first that does not pass, and what looks."""
