"""Runs a device's own programs so that they can neither ask a question nor hang."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from powerlab.domain.errors import PowerlabError
from powerlab.modes.lock import held_lock
from powerlab.privileged import client
from powerlab.sysroot import Sysroot


def run_program(sysroot: Sysroot, program: str, *arguments: str, timeout_s: float) -> str:
    """Return what a program printed, its complaints too; its exit status says nothing reliable and is not used.

    Who is not root has it run by the privileged helper, where there is one that has it on its list.

    Args:
        sysroot: the device.
        program: the program's path on the device.
        arguments: those that begin with ``/`` are paths on the device.
        timeout_s: it is ended after that.

    Raises:
        PowerlabError: it cannot be started or does not end, or the helper refuses.
    """
    try:
        if os.geteuid() != 0 and client.may_run(sysroot, program):
            return client.run_program(sysroot, program, arguments, held_lock(sysroot))
        return output_of(sysroot, program, *arguments, timeout_s=timeout_s)
    except OSError as error:
        raise PowerlabError(f"{program} cannot be run ({error.strerror}); reinstall it or run as root.") from None


def output_of(
    sysroot: Sysroot, program: str, *arguments: str, timeout_s: float, environment: Mapping[str, str] | None = None
) -> str:
    """Do as :func:`run_program` does, in this process's own name.

    The program has no standard input and no terminal, so every question is answered with no. It keeps open what is
    inheritable: the lock of the process that sets modes, so that a change goes on being guarded when that process dies.

    Raises:
        PowerlabError: it does not end.
        OSError: it cannot be started.
    """
    own = [str(sysroot.path(argument)) if argument.startswith("/") else argument for argument in arguments]
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
            env=environment,
        )
    except subprocess.TimeoutExpired:
        name = program.rpartition("/")[2]
        raise PowerlabError(f"{name} did not end within {timeout_s:g} s; run it by hand to see why.") from None
    return done.stdout.decode("utf-8", "replace")
