"""Carry out a request to the helper: look it up in the allowlist, do it, report the result."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import NamedTuple

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.modes.io.files import write_line
from powerlab.modes.io.permissions import FilePermission
from powerlab.modes.io.programs import YES, output_of
from powerlab.privileged.protocol import (
    Done,
    Failed,
    MakeSetting,
    May,
    OpenFile,
    ReadRegister,
    Reboot,
    Refused,
    Reply,
    Request,
    RunProgram,
    WriteFile,
)
from powerlab.sysroot import Sysroot
from powerlab_helper.allowlist import Allowed
from powerlab_helper.safe_open import check_trusted, is_plain, open_listed

_PROGRAM_TIMEOUT_S = 60.0
_MAX_OUTPUT_CHARACTERS = 8000
_MAX_CPU = 8191
_REGISTER_BYTES = 8
_MEMBERS = "/cgroup.procs"
"""A process written there is moved into that control group."""
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
"""What a program sees: nothing of it comes from who asked."""


class Outcome(NamedTuple):
    """A reply, and the descriptor that goes with it, which the caller must close."""

    reply: Reply
    descriptor: int | None = None


@dataclass(frozen=True, slots=True)
class Actions:
    """The actions on one device.

    Attributes:
        sysroot: the device.
        allowed: the list.
    """

    sysroot: Sysroot
    allowed: Allowed = field(default_factory=Allowed)

    def carry_out(self, request: Request, uid: int) -> Outcome:
        """Do what a user asks for, or say in the reply why not. Never raises for anything that a request may hold."""
        try:
            return self._carry_out(request, uid)
        except PowerlabError as error:
            return Outcome(Refused(str(error)))
        except OSError as error:
            return Outcome(Failed(error.errno or 0))

    def _carry_out(self, request: Request, uid: int) -> Outcome:
        match request:
            case WriteFile():
                self._write(request.path, request.value, uid)
                return Outcome(Done())
            case OpenFile():
                return Outcome(Done(), self._open(request.path))
            case RunProgram() | Reboot():
                return Outcome(Done(self._run(request)))
            case MakeSetting():
                self._set(request)
                return Outcome(Done())
            case ReadRegister():
                return Outcome(Done(str(self._register(request))))
            case May():
                self._may(request)
                return Outcome(Done())

    def _write(self, path: str, value: str, uid: int) -> None:
        permissions = self.allowed.write_permissions(path, value)
        if not permissions:
            what = f"{value[:100]!r} to {path[:200]}" if self.allowed.may_write(path) else f"to {path[:200]!r}"
            raise PowerlabError(f"the privileged helper does not write {what}: that is not on its list.")
        reasons = [self._out_of_range(grant, path, value) for grant in permissions]
        if all(reasons):
            raise PowerlabError(f"the privileged helper does not write {value} to {path}: {reasons[0]}.")
        if path.endswith(_MEMBERS) and uid not in {0, os.stat(self.sysroot.path(f"/proc/{int(value)}")).st_uid}:
            raise PowerlabError(f"process {value} is another user's, so the privileged helper does not move it.")
        write_line(open_listed(self.sysroot, path, os.O_WRONLY), value, is_plain=self.sysroot.simulated)

    def _out_of_range(self, grant: FilePermission, path: str, value: str) -> str | None:
        """Return why a value is outside of what the driver says, None where it is inside or no range is asked for."""
        if grant.between is None:
            return None
        directory = path.rpartition("/")[0]
        try:
            low, high = (self._integer(f"{directory}/{name}") for name in grant.between)
            inside = low <= int(value) <= high
        except (OSError, ValueError):
            return f"its range in {' and '.join(grant.between)} cannot be read"
        return None if inside else f"the device's range is {low} to {high}"

    def _integer(self, path: str) -> int:
        with open(open_listed(self.sysroot, path, os.O_RDONLY), encoding="ascii") as file:
            return int(file.read())

    def _open(self, path: str) -> int:
        if not self.allowed.may_read(path):
            raise PowerlabError(f"the privileged helper does not open {path[:200]!r}: that is not on its list.")
        return open_listed(self.sysroot, path, os.O_RDONLY)

    def _run(self, request: RunProgram | Reboot) -> str:
        reboots = isinstance(request, Reboot)
        if reboots and not self.allowed.reboots:
            raise PowerlabError(
                "the privileged helper does not reboot this device; start it with --allow-reboot, as its unit says how."
            )
        may = self.allowed.may_reboot_with if reboots else self.allowed.may_run_with
        if not may(request.program, request.arguments):
            words = " ".join((request.program, *request.arguments))[:200]
            verb = "reboot with" if reboots else "run"
            raise PowerlabError(f"the privileged helper does not {verb} {words!r}: that is not on its list.")
        for path in (request.program, *(word for word in request.arguments if word.startswith("/"))):
            if not is_plain(path):
                raise PowerlabError(f"{path[:100]!r} is not a plain path, so it is not looked at.")
            check_trusted(self.sysroot, path)
        said = output_of(
            self.sysroot,
            request.program,
            *request.arguments,
            timeout_s=_PROGRAM_TIMEOUT_S,
            environment=_ENVIRONMENT,
            answer=YES if reboots else "",
        )
        return said[-_MAX_OUTPUT_CHARACTERS:]

    def _set(self, request: MakeSetting) -> None:
        knob = self.allowed.settable(request.knob)
        if knob is None or not self.allowed.may_set(knob, request.target, request.value):
            words = f"{request.knob} {request.target} = {request.value}"[:200]
            raise PowerlabError(f"the privileged helper does not set {words!r}: that is not on its list.")
        knob.write(self.sysroot, Setting(knob=request.knob, target=request.target, value=request.value))

    def _register(self, request: ReadRegister) -> int:
        if request.register not in self.allowed.registers or not 0 <= request.cpu <= _MAX_CPU:
            what = f"register {request.register:#x} of processor {request.cpu}"
            raise PowerlabError(f"the privileged helper does not read {what}: that is not on its list.")
        device = self.sysroot.path(f"/dev/cpu/{request.cpu}/msr")
        handle = os.open(device, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return int.from_bytes(os.pread(handle, _REGISTER_BYTES, request.register), "little")
        finally:
            os.close(handle)

    def _may(self, question: May) -> None:
        if question.deed == "write":
            if not self.allowed.may_write(question.name):
                raise PowerlabError(f"the privileged helper does not write to {question.name[:200]!r}.")
            os.close(open_listed(self.sysroot, question.name, os.O_WRONLY))
        elif question.deed == "run":
            if not self.allowed.may_run(question.name):
                raise PowerlabError(f"the privileged helper does not run {question.name[:200]!r}.")
        elif self.allowed.settable(question.name) is None:
            raise PowerlabError(f"the privileged helper cannot set {question.name[:200]!r}.")
