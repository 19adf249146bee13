"""Run the device's own ``nvpmodel``."""

from __future__ import annotations

from powerlab.domain.errors import PowerlabError
from powerlab.modes.io.programs import run_program, run_to_reboot
from powerlab.modes.knobs.nvpmodel.conf import ModeNow, parse_query
from powerlab.sysroot import Sysroot

PROGRAM = "/usr/sbin/nvpmodel"
TIMEOUT_S = 60.0
_FAN_WARNING = "fan mode is not set"


def run_nvpmodel(sysroot: Sysroot, *arguments: str) -> str:
    """Return what nvpmodel printed, its complaints too; without an input its question about a reboot is answered no.

    Raises:
        PowerlabError: it cannot be started or does not end.
    """
    return run_program(sysroot, PROGRAM, *arguments, timeout_s=TIMEOUT_S)


def query(sysroot: Sysroot) -> ModeNow:
    """Return the mode the device says it is in.

    Raises:
        PowerlabError: nvpmodel cannot be run.
    """
    return parse_query(run_nvpmodel(sysroot, "-q"))


def set_mode(sysroot: Sysroot, mode_id: int, mode_name: str) -> None:
    """Set a mode and make sure that the device took it.

    Raises:
        PowerlabError: it did not, with its own words.
    """
    words = run_nvpmodel(sysroot, "-m", str(mode_id))
    now = query(sysroot)
    if now.id != mode_id:
        lines = [line.strip() for line in words.splitlines() if line.strip() and _FAN_WARNING not in line]
        said = "; ".join(lines) or "nothing"
        stays = now.name or "a mode of its own"
        raise PowerlabError(f"nvpmodel did not set {mode_name}, the device stays in {stays}; it said: {said}.")


def reboot_into(sysroot: Sysroot, mode_id: int) -> str:
    """Set a mode with a yes to the question whether to reboot for it; return what nvpmodel said.

    It keeps the mode for the next boot and reboots; a mode that needs no reboot is set at once, and nothing is asked.

    Raises:
        PowerlabError: nvpmodel cannot be run, or the privileged helper may not reboot.
    """
    return run_to_reboot(sysroot, PROGRAM, "-m", str(mode_id), timeout_s=TIMEOUT_S)
