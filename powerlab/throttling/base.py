"""The interface of a watch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from powerlab.domain.power import Availability
from powerlab.sysroot import Sysroot


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchProbe:
    """What a watch found on a device: whether it can tell, why not, and what to do about it."""

    watch: str
    availability: Availability
    detail: str
    remedy: str = ""


class Watching(Protocol):
    """One watch during one measurement. Nothing here raises: what cannot be read says nothing."""

    def sample(self) -> None:
        """Look at what must be looked at again and again; called about five times a second."""
        ...

    def finish(self) -> tuple[str, ...]:
        """Return one sentence for each way in which the device was slowed down since the start."""
        ...


class Watch(Protocol):
    """One sign of throttling. A watch is one module in this package and one line in the registry."""

    name: str

    def probe(self, sysroot: Sysroot) -> WatchProbe:
        """Say whether the device shows this sign, without raising."""
        ...

    def start(self, sysroot: Sysroot) -> Watching:
        """Begin to watch, without raising."""
        ...
