"""Power of the whole machine from a server's management controller (IPMI DCMI).

Read through ``ipmitool dcmi power reading``, else FreeIPMI's ``ipmi-dcmi --get-system-power-statistics``. Whole watts,
renewed about once a second; the controller's accuracy is not stated anywhere. Every read starts a program, so it costs
tens of milliseconds, which the recorder measures and stores. A reading of 0 W is the same as none. Sources: DCMI 1.5,
6.6.1 "Get Power Reading"; ipmitool's ``lib/ipmi_dcmi.c``, which prints the first form.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from powerlab.domain.power import Availability, Rail, RailQuantity, SourceProbe
from powerlab.power.base import Channel, PolledChannel
from powerlab.power.sources.programs import find_program, run_program
from powerlab.power.sources.scan import read_text, sensor_provenance
from powerlab.sysroot import Sysroot

PROGRAMS = {"ipmitool": ("dcmi", "power", "reading"), "ipmi-dcmi": ("--get-system-power-statistics",)}
DEVICES = ("/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0")
RAIL = "system"
_TIMEOUT_S = 5.0
_UPDATE_PERIOD_S = 1.0
_STEP_W = 1.0
_RELATIVE_ERROR = 0.1
"""Nobody states one: the controller adds up what the power supplies say."""

_POWER = re.compile(r"^\s*(?:Instantaneous power reading|Current Power)\s*:\s*(\d{1,6})\s*watts\b", re.I | re.M | re.A)
_STATE = re.compile(r"^\s*(?:Power reading state is|Power Measurement)\s*:\s*(\w[\w ]*?)\s*$", re.I | re.M | re.A)
_ACTIVE = ("activated", "active")

_DEVICE_REMEDY = "load the driver: `sudo modprobe ipmi_si; sudo modprobe ipmi_devintf`"
_SERVER_CHASSIS = ("17", "23", "25", "28", "29")
"""SMBIOS chassis types of servers, racks and blades (DSP0134, 7.4.1): other machines have no management controller."""
_PROGRAM_REMEDY = "install one: `sudo apt install ipmitool` (or freeipmi-tools)"
_DENIED_REMEDY = (
    "run powerlab with sudo, or let a group read it: "
    """`echo 'KERNEL=="ipmi*", GROUP="powerlab", MODE="0660"' | sudo tee /etc/udev/rules.d/70-powerlab-ipmi.rules; """
    "sudo groupadd -f powerlab; sudo usermod -aG powerlab $USER; sudo udevadm trigger`, then log in again; whoever may "
    "open the device may also reset the machine"
)
_DEACTIVATED_REMEDY = (
    "switch power measurement on in the controller's own settings; `ipmitool dcmi power activate` switches on its "
    "power limit, which some controllers need for a reading, and may slow the machine down"
)
_BROKEN_REMEDY = (
    "run the program by hand to see more: `sudo ipmitool dcmi power reading`; not every controller knows DCMI"
)


class NoReadingError(OSError):
    """The controller answered, but not with a power."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the controller answered.

    Attributes:
        power_w: present power in W; None where it gives 0, which may as well mean that it measures nothing.
        active: whether the controller measures.
    """

    power_w: float | None
    active: bool


def parse_reading(text: str) -> Reading:
    """Parse what either program prints.

    Raises:
        ValueError: there is no power reading in it.
    """
    power = _POWER.search(text)
    if power is None:
        raise ValueError(_first_line(text) or "no answer")
    state = _STATE.search(text)
    return Reading(float(power[1]) or None, state is None or state[1].lower() in _ACTIVE)


class Ipmi:
    """One rail, ``ipmi:system``: the whole machine, as its management controller counts it."""

    name = "ipmi"
    root_files: tuple[str, ...] = ()

    def probe(self, sysroot: Sysroot) -> SourceProbe:
        """Say what is there: the controller is asked once."""
        device, command = _device(sysroot), _command(sysroot)
        if device is None:
            server = read_text(sysroot, "/sys/class/dmi/id/chassis_type") in _SERVER_CHASSIS
            detail = "no management controller: there is no /dev/ipmi0"
            return self._answer(Availability.ABSENT, detail, _DEVICE_REMEDY if server else "")
        if command is None:
            detail = f"there is {device}, but neither ipmitool nor ipmi-dcmi is installed"
            return self._answer(Availability.ABSENT, detail, _PROGRAM_REMEDY)
        if not os.access(sysroot.path(device), os.R_OK | os.W_OK):
            return self._answer(Availability.DENIED, f"this user may not open {device}", _DENIED_REMEDY)
        return self._judged(sysroot, command)

    def _judged(self, sysroot: Sysroot, command: Sequence[str]) -> SourceProbe:
        try:
            reading = _ask(sysroot, command)
        except OSError as error:
            if "permission denied" in str(error).lower():
                return self._answer(Availability.DENIED, f"this user may not ask: {error}", _DENIED_REMEDY)
            return self._answer(Availability.BROKEN, f"the controller gives no power: {error}", _BROKEN_REMEDY)
        if not reading.active:
            detail = "the controller's power reading is deactivated"
            return self._answer(Availability.BROKEN, detail, _DEACTIVATED_REMEDY)
        if reading.power_w is None:
            return self._answer(Availability.BROKEN, "the controller says 0 W: it measures nothing", _BROKEN_REMEDY)
        detail = f"{command[0].rpartition('/')[2]}: the whole machine in whole watts, about once a second"
        rail = _rail(sysroot)
        return SourceProbe(source=self.name, availability=Availability.AVAILABLE, detail=detail, rails=(rail,))

    def channels(self, sysroot: Sysroot) -> Sequence[Channel]:
        """Return how to read the machine's power."""
        command = _command(sysroot)
        if command is None or _device(sysroot) is None:
            return ()
        return (PolledChannel(rail=_rail(sysroot), read=partial(_power_w, sysroot, command)),)

    def _answer(self, state: Availability, detail: str, remedy: str = "") -> SourceProbe:
        return SourceProbe(source=self.name, availability=state, detail=detail, remedy=remedy)


def _device(sysroot: Sysroot) -> str | None:
    return next((path for path in DEVICES if sysroot.path(path).exists()), None)


def _command(sysroot: Sysroot) -> tuple[str, ...] | None:
    """Return the first installed program with its arguments."""
    for name, arguments in PROGRAMS.items():
        if program := find_program(sysroot, name):
            return (program, *arguments)
    return None


def _ask(sysroot: Sysroot, command: Sequence[str]) -> Reading:
    """Ask the controller.

    Raises:
        OSError: no program, no answer in time, or no power in it.
    """
    answer = run_program(sysroot, command[0], command[1:], _TIMEOUT_S)
    try:
        return parse_reading(answer.text)
    except ValueError as error:
        raise NoReadingError(str(error)) from None


def _power_w(sysroot: Sysroot, command: Sequence[str]) -> float:
    reading = _ask(sysroot, command)
    if reading.power_w is None or not reading.active:
        raise NoReadingError("the controller measures nothing now")
    return reading.power_w


def _first_line(text: str) -> str:
    return next((line.strip()[:120] for line in text.splitlines() if line.strip()), "")


def _rail(sysroot: Sysroot) -> Rail:
    return Rail(
        source=Ipmi.name,
        name=RAIL,
        quantity=RailQuantity.POWER,
        resolution=_STEP_W,
        relative_error=_RELATIVE_ERROR,
        update_period_s=_UPDATE_PERIOD_S,
        provenance=sensor_provenance(sysroot),
    )
