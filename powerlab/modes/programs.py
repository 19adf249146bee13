"""Runs a device's own programs so that they can neither ask a question nor hang."""

from __future__ import annotations

import subprocess

from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot


def run_program(sysroot: Sysroot, program: str, *arguments: str, timeout_s: float) -> str:
    """Return what a program printed, its complaints too; its exit status says nothing reliable and is not used.

    It has no standard input and no terminal, so every question is answered with no. It keeps open what is inheritable:
    the lock of the process that sets modes, so that a change goes on being guarded when that process dies.

    Args:
        sysroot: the device.
        program: the program's path on the device.
        arguments: those that begin with ``/`` are paths on the device.
        timeout_s: it is ended after that.

    Raises:
        PowerlabError: it cannot be started or does not end.
    """
    own = [str(sysroot.path(argument)) if argument.startswith("/") else argument for argument in arguments]
    name = program.rpartition("/")[2]
    try:
        done = subprocess.run(
            [str(sysroot.path(program)), *own],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            check=False,
            close_fds=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise PowerlabError(f"{name} did not end within {timeout_s:g} s; run it by hand to see why.") from None
    except OSError as error:
        raise PowerlabError(f"{program} cannot be run ({error.strerror}); reinstall it or run as root.") from None
    return done.stdout.decode("utf-8", "replace")
