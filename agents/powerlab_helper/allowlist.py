"""The fixed allowlist of the helper: the knobs' permissions, and the sensors that only root may read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from powerlab.modes.base import Knob
from powerlab.modes.io.permissions import FilePermission, ProgramPermission, RebootPermission, SettingPermission
from powerlab.modes.registry import KNOBS
from powerlab.power.registry import SENSORS

SENSOR_FILES: tuple[str, ...] = tuple(pattern for source in SENSORS for pattern in source.root_files)
"""Regular expressions; each matches the whole path."""

REGISTERS: frozenset[int] = frozenset({0x19C, 0x1B1, 0x64F, 0x690, 0x6B0, 0x6B1})
"""Model-specific registers that may be read: thermal status of a core and of the package, and the reasons for which
core, graphics and ring were slowed down (Intel SDM vol. 4, tables 2-2, 2-20, 2-39). One register at a time and by
number: a descriptor of ``/dev/cpu/N/msr`` would open all of them."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Everything that may be asked for; what is not here is refused.

    Attributes:
        knobs: their permissions say what may be set.
        sensor_files: regular expressions of what may be read.
        registers: processors' registers that may be read.
        reboots: whether the device may be rebooted into a power mode that needs it.
    """

    knobs: Sequence[Knob] = KNOBS
    sensor_files: Sequence[str] = SENSOR_FILES
    registers: frozenset[int] = REGISTERS
    reboots: bool = False

    def may_write(self, path: str) -> bool:
        """Say whether some value may be written to a file."""
        return any(re.fullmatch(grant.path, path) for grant in self._file_permissions())

    def may_read(self, path: str) -> bool:
        """Say whether a file may be opened: a sensor, or what a knob may write and so has to read."""
        return any(re.fullmatch(pattern, path) for pattern in self.sensor_files) or self.may_write(path)

    def write_permissions(self, path: str, value: str) -> list[FilePermission]:
        """Return the permissions for a value of a file, of which one has to hold also in its range."""
        return [grant for grant in self._file_permissions() if grant.covers(path, value)]

    def may_run(self, program: str) -> bool:
        """Say whether a program may be run with some arguments."""
        return any(grant.program == program for grant in self._program_permissions())

    def may_run_with(self, program: str, arguments: Sequence[str]) -> bool:
        """Say whether a program may be run with these arguments."""
        return any(grant.covers(program, arguments) for grant in self._program_permissions())

    def may_reboot_with(self, program: str, arguments: Sequence[str]) -> bool:
        """Say whether a program may be run with these arguments to reboot the device."""
        permissions = (
            grant for knob in self.knobs for grant in knob.permissions if isinstance(grant, RebootPermission)
        )
        return self.reboots and any(one.covers(program, arguments) for one in permissions)

    def settable(self, knob_name: str) -> Knob | None:
        """Return the knob of that name if the helper makes any setting of it with the knob's own code."""
        return next((knob for knob in self.knobs if knob.name == knob_name and any(_setting_permissions(knob))), None)

    def may_set(self, knob: Knob, target: str, value: str) -> bool:
        """Say whether a setting may be made."""
        return any(grant.covers(target, value) for grant in _setting_permissions(knob))

    def _file_permissions(self) -> Iterator[FilePermission]:
        return (grant for knob in self.knobs for grant in knob.permissions if isinstance(grant, FilePermission))

    def _program_permissions(self) -> Iterator[ProgramPermission]:
        return (grant for knob in self.knobs for grant in knob.permissions if type(grant) is ProgramPermission)


def _setting_permissions(knob: Knob) -> Iterator[SettingPermission]:
    return (grant for grant in knob.permissions if isinstance(grant, SettingPermission))
