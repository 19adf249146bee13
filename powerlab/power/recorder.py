"""Samples rails in the background: files in the native thread, everything else in one Python thread."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from powerlab.domain.power import Trace
from powerlab.power.registry import channels_of
from powerlab.sysroot import Sysroot


class Recorder:
    """Records rails between ``start`` and ``stop``; as a context manager it starts at once and always stops.

    Attributes:
        failed_reads: after ``stop``, per rail key the reads that failed: gaps in its trace.
    """

    def __init__(self, sysroot: Sysroot, rail_keys: Sequence[str], period_s: float) -> None:
        """Open the rails.

        Args:
            sysroot: the machine or a simulated board.
            rail_keys: keys of the rails to record.
            period_s: time between two samples.

        Raises:
            PowerlabError: a rail is not there or cannot be opened, or the period is not above 0.
        """
        self.failed_reads: dict[str, int] = {}
        self._channels = channels_of(sysroot, rail_keys)
        self._period_s = period_s

    def start(self) -> None:
        """Begin to sample; each rail is read once at once, then every period."""
        raise NotImplementedError

    def stop(self) -> tuple[Trace, ...]:
        """End sampling and return one trace a rail, in the order asked for; stopping again returns the same.

        Raises:
            PowerlabError: a rail gave not one sample.
        """
        raise NotImplementedError

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End sampling without asking for traces."""
        raise NotImplementedError


def observed_update_period_s(trace: Trace) -> float:
    """Return the time between two changes of a rail's value, 0 where it changed less than twice."""
    raise NotImplementedError
