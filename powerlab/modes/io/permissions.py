"""Permissions of the privileged helper as data: each knob lists its own beside the code that uses them.

The helper runs as root and believes nothing it is asked for. It does only what one of these lists allows, so the lists
together are the whole of what powerlab can do to a device.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePermission:
    """A file that may be written.

    Attributes:
        path: regular expression the whole path matches, as seen from inside the sysroot.
        values: regular expression the whole value matches.
        between: names of two files beside it whose integers bound the value (``cpuinfo_min_freq``,
            ``cpuinfo_max_freq``); None where ``values`` says all.
    """

    path: str
    values: str
    between: tuple[str, str] | None = None

    def covers(self, path: str, value: str) -> bool:
        """Say whether path and value match; ``between`` is left to the caller, who can read files."""
        return bool(re.fullmatch(self.path, path)) and bool(re.fullmatch(self.values, value))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramPermission:
    """A program that may be run.

    Attributes:
        program: its path.
        arguments: one regular expression for each argument, each of which matches the whole of it.
    """

    program: str
    arguments: tuple[str, ...] = ()

    def covers(self, program: str, arguments: Sequence[str]) -> bool:
        """Say whether the program and every argument match."""
        return (
            program == self.program
            and len(arguments) == len(self.arguments)
            and all(re.fullmatch(wanted, given) for wanted, given in zip(self.arguments, arguments, strict=True))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingPermission:
    """A setting that the helper makes with the knob's own ``write``: for what is neither a file nor a program.

    Attributes:
        target: regular expression the whole target matches.
        values: regular expression the whole value matches.
    """

    target: str
    values: str

    def covers(self, target: str, value: str) -> bool:
        """Say whether target and value match."""
        return bool(re.fullmatch(self.target, target)) and bool(re.fullmatch(self.values, value))


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootPermission(ProgramPermission):
    """A program that may be run and told to reboot the device, where the helper's owner allows that at all."""


Permission = FilePermission | ProgramPermission | SettingPermission | RebootPermission
