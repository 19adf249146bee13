"""The interface every power source fulfils."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from powerlab.domain.power import Rail, SourceProbe
from powerlab.sysroot import Sysroot


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChannel:
    """A rail the native sampler reads: one or two files, each holding one decimal integer.

    The value in W or J is the product of the readings (one file: the reading itself) times ``scale``. An energy
    counter starts again at 0 after ``wraps_at`` raw units (None: never). A reading equal to ``invalid`` is the driver's
    word for "unknown" and is dropped. Paths are given as seen from inside the sysroot.
    """

    rail: Rail
    paths: tuple[str, ...]
    scale: float
    wraps_at: int | None = None
    invalid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledChannel:
    """A rail read by calling Python, for sources that are no file: ``read`` returns W or J, or raises OSError."""

    rail: Rail
    read: Callable[[], float]


Channel = FileChannel | PolledChannel


class PowerSource(Protocol):
    """One kind of sensor. A source is one module in this package and one line in the registry."""

    name: str

    def probe(self, sysroot: Sysroot) -> SourceProbe:
        """Say what is there, without raising: a missing sensor is an answer."""
        ...

    def channels(self, sysroot: Sysroot) -> Sequence[Channel]:
        """Return how to read each rail that ``probe`` listed."""
        ...
