"""The interface of a knob."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from powerlab.domain.mode import PowerMode, Setting
from powerlab.domain.power import Availability
from powerlab.modes.io.permissions import Permission
from powerlab.sysroot import Sysroot


@dataclass(frozen=True, slots=True, kw_only=True)
class KnobProbe:
    """What a knob found on a device: whether it can be turned, why not, and what to do about it."""

    knob: str
    availability: Availability
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form of mode names a knob understands beyond those it lists.

    Attributes:
        name: for example ``cpu-max=NkHz``.
        meaning: what such a mode does, in one line.
    """

    name: str
    meaning: str


class Knob(Protocol):
    """One thing that can be set. A knob is one module in this package and one line in the registry.

    Attributes:
        name: unique in the registry.
        meaning: what it sets, in one line for a newcomer.
        forms: names of modes it understands beyond those it lists.
        permissions: what the privileged helper may do for this knob.
    """

    name: str
    meaning: str
    forms: tuple[Form, ...]
    permissions: tuple[Permission, ...]

    def probe(self, sysroot: Sysroot) -> KnobProbe:
        """Say whether the knob is there and can be turned, without raising."""
        ...

    def modes(self, sysroot: Sysroot) -> Sequence[PowerMode]:
        """Return a handful of useful power modes this knob offers by itself."""
        ...

    def parse(self, sysroot: Sysroot, name: str) -> PowerMode | None:
        """Return the power mode of that name, listed by :meth:`modes` or not; None where the name is not this knob's.

        Raises:
            PowerlabError: the name is this knob's, for example ``cores=99``, and impossible on this device.
        """
        ...

    def read(self, sysroot: Sysroot) -> Sequence[Setting]:
        """Return every setting of this knob as it is now, in the order in which to write them back.

        None where the knob is absent; raises PowerlabError where it is there and cannot be read.
        """
        ...

    def write(self, sysroot: Sysroot, setting: Setting) -> None:
        """Make one setting; raises PowerlabError with the device's own words where it refuses."""
        ...

    def survives_reboot(self, setting: Setting) -> bool:
        """Say whether a setting made now is still there after the next boot."""
        ...
