"""Runs the device's own ``nvpmodel`` so that it can neither ask a question nor hang."""

from __future__ import annotations

import subprocess

from powerlab.domain.errors import PowerlabError
from powerlab.modes.nvpmodel_conf import ModeNow, parse_query
from powerlab.sysroot import Sysroot

PROGRAM = "/usr/sbin/nvpmodel"
TIMEOUT_S = 60.0
_FAN_WARNING = "fan mode is not set"


def run_nvpmodel(sysroot: Sysroot, *arguments: str) -> str:
    """Return what nvpmodel printed, its complaints too; its exit status says nothing reliable and is not used.

    It has no standard input and no terminal, so its question about a reboot is answered with no. It keeps open what is
    inheritable: the lock of the process that sets modes, so that a change goes on being guarded when that process dies.

    Raises:
        PowerlabError: it cannot be started or does not end.
    """
    try:
        done = subprocess.run(
            [str(sysroot.path(PROGRAM)), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
            check=False,
            close_fds=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise PowerlabError(f"nvpmodel did not end within {TIMEOUT_S:.0f} s; run it by hand to see why.") from None
    except OSError as error:
        raise PowerlabError(f"{PROGRAM} cannot be run ({error.strerror}); reinstall it or run as root.") from None
    return done.stdout.decode("utf-8", "replace")


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
