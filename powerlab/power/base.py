"""The interface of a power source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
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


@dataclass(frozen=True, slots=True)
class Stamped:
    """A value in W or J with its own moment on CLOCK_MONOTONIC: its arrival, for sources that send by themselves."""

    time_ns: int
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledChannel:
    """A rail read by calling Python, for sources that are no file.

    Attributes:
        rail: what is read.
        read: returns W or J; raises OSError where the reading fails. A :class:`Stamped` value that is not newer than
            the last one says that nothing new has come, which is no failure; a tuple holds all that came since the last
            read, oldest first.
        session: what must be open while the rail is read (a process, a connection). Channels that share one session
            open it once; an OSError on opening makes every reading fail.
    """

    rail: Rail
    read: Callable[[], float | Stamped | tuple[Stamped, ...]]
    session: Callable[[], AbstractContextManager[None]] | None = None


Channel = FileChannel | PolledChannel


class PowerSource(Protocol):
    """One kind of sensor. A source is one module in this package and one line in the registry.

    Attributes:
        name: as in the registry and in rail keys.
        root_files: regular expressions, each for the whole path of a sensor's file that only root may read on some
            systems; the privileged helper opens these and no others.
    """

    name: str
    root_files: tuple[str, ...]

    def probe(self, sysroot: Sysroot) -> SourceProbe:
        """Say what is there, without raising: a missing sensor is an answer."""
        ...

    def channels(self, sysroot: Sysroot) -> Sequence[Channel]:
        """Return how to read each rail that ``probe`` listed."""
        ...
