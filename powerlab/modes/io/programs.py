"""Run a device's own programs so that they can neither prompt nor hang."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from typing import Any

from powerlab.domain.errors import PowerlabError
from powerlab.modes.undo.lock import held_lock
from powerlab.privileged import client
from powerlab.sysroot import Sysroot

YES = "YES\n"
_UMASK = 0o022
"""The usual one: a strict one of who asks would close to others the files that NVIDIA's programs leave for them."""


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


def run_to_reboot(sysroot: Sysroot, program: str, *arguments: str, timeout_s: float) -> str:
    """Do as :func:`run_program` does, and answer the program's question whether to reboot now with yes.

    The privileged helper does that only where it was started with ``--allow-reboot``.
    """
    try:
        if os.geteuid() != 0 and client.is_there(sysroot):
            return client.reboot(sysroot, program, arguments, held_lock(sysroot))
        return output_of(sysroot, program, *arguments, timeout_s=timeout_s, answer=YES)
    except OSError as error:
        raise PowerlabError(f"{program} cannot be run ({error.strerror}); reinstall it or run as root.") from None


def output_of(
    sysroot: Sysroot,
    program: str,
    *arguments: str,
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
    answer: str = "",
) -> str:
    """Do as :func:`run_program` does, in this process's own name.

    The program has no terminal, and its standard input holds ``answer`` alone: without one every question is answered
    with no. It keeps open what is
    inheritable: the lock of the process that sets modes, so that a change goes on being guarded when that process dies.
    Where it does not end, or this process is interrupted, it is ended with all that it started: what goes on working
    would undo what is put back meanwhile.

    Raises:
        PowerlabError: it does not end.
        OSError: it cannot be started.
    """
    own = [str(sysroot.path(argument)) if argument.startswith("/") else argument for argument in arguments]
    try:
        done = completed(
            [str(sysroot.path(program)), *own],
            answer=answer,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            close_fds=False,
            start_new_session=True,
            umask=_UMASK,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        name = program.rpartition("/")[2]
        raise PowerlabError(f"{name} did not end within {timeout_s:g} s; run it by hand to see why.") from None
    return done.stdout.decode("utf-8", "replace")


def completed(
    arguments: list[str], *, timeout: float, answer: str = "", **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run a program as :func:`subprocess.run` does, but end all that has its session where it has to be ended."""
    source = subprocess.PIPE if answer else subprocess.DEVNULL
    with subprocess.Popen(arguments, stdin=source, **options) as process:
        try:
            said, _ = process.communicate(answer.encode() or None, timeout=timeout)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(arguments, process.returncode, said)
