"""Sample rails in the background: files in the native thread, everything else in one Python thread.

with Recorder(Sysroot(), ["rapl:package-0"], period_s=0.01) as recorder:
    ...                                 # the work to measure
    traces = recorder.stop()
"""

from __future__ import annotations

import contextlib
import importlib
import math
import os
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import RailQuantity, Trace
from powerlab.power.base import Channel, FileChannel, PolledChannel
from powerlab.power.registry import channels_of
from powerlab.power.sampling.counters import rising, unwrap
from powerlab.power.sampling.poller import PolledSamples, Poller
from powerlab.privileged.client import is_there
from powerlab.privileged.reading import is_denied, open_denied
from powerlab.sysroot import Sysroot

_Int64s = NDArray[np.int64]
_FileSamples = tuple[_Int64s, _Int64s, _Int64s, int]


class _Sampler(Protocol):
    """The native sampler (powerlab/native/sampler/sampler.hpp)."""

    missed_deadlines: int
    rounds: int
    cpu_ns: int
    wall_ns: int

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def take(self) -> list[_FileSamples]: ...


class Recorder:
    """Records rails between ``start`` and ``stop``; as a context manager it starts at once and always ends.

    Attributes:
        failed_reads: after ``stop``, per rail key the readings that failed or were dropped: gaps in its trace.
        missed_deadlines: after ``stop``, periods skipped because reading the files took too long.
        core_share: after ``stop``, processor time of the sampling threads as a share of one core. What a source does in
            programs of its own (tegrastats, a service) is not in it.
    """

    def __init__(
        self, sysroot: Sysroot, rail_keys: Sequence[str], period_s: float, *, every_period: bool = False
    ) -> None:
        """Open the rails.

        Args:
            sysroot: the machine or a simulated board.
            rail_keys: keys of the rails to record.
            period_s: time between two samples; a polled rail is read no more often than its value is said to change.
            every_period: read polled rails in every period too, whatever is said of them.

        Raises:
            PowerlabError: a rail is not there or cannot be opened, or the period is not above 0.
        """
        if not (math.isfinite(period_s) and period_s >= 1e-6):
            raise PowerlabError(f"the sample period is {period_s:g} s; give a time of at least 1 µs.")
        self.failed_reads: dict[str, int] = {}
        self.missed_deadlines = 0
        self.core_share = 0.0
        self._traces: tuple[Trace, ...] | None = None
        self._running = False
        self._channels = channels_of(sysroot, rail_keys)
        self._files = [channel for channel in self._channels if isinstance(channel, FileChannel)]
        self._polled = [channel for channel in self._channels if isinstance(channel, PolledChannel)]
        self._sampler = _open_sampler(sysroot, self._files, period_s)
        self._poller = Poller(self._polled, period_s, every_period=every_period)

    def start(self) -> None:
        """Begin to sample; each rail is read once at once, then every period. Earlier samples are forgotten."""
        if self._running:
            return
        self._traces = None
        self._running = True
        self._sampler.start()
        self._poller.start()

    def stop(self) -> tuple[Trace, ...]:
        """End sampling and return one trace a rail, in the order asked for; stopping again returns the same.

        Raises:
            PowerlabError: the recorder was never started, or a rail gave not one sample.
        """
        traces = self.stop_anyway()
        silent = [trace.rail.key for trace in traces if not len(trace.time_ns)]
        if silent:
            raise PowerlabError(
                f"no reading of {', '.join(silent)} worked while recording; `powerlab doctor` says what is wrong."
            )
        return traces

    def stop_anyway(self) -> tuple[Trace, ...]:
        """Do as :meth:`stop` does, but return the traces of silent rails too: they are empty.

        Raises:
            PowerlabError: the recorder was never started.
        """
        if self._traces is None:
            if not self._running:
                raise PowerlabError("the recorder was not started, so it has no samples; call start() first.")
            self.close()
            self._traces = self._collect()
        return self._traces

    @property
    def rounds(self) -> int:
        """How often every file has been read since ``start``."""
        return self._sampler.rounds

    def close(self) -> None:
        """End sampling without asking for traces; does nothing when already ended."""
        if self._running:
            self._running = False
            self._sampler.stop()
            try:
                self._poller.stop()
            finally:
                # Both threads lived equally long, but for the moments between two starts and two ends.
                self.core_share = (self._sampler.cpu_ns + self._poller.cpu_ns) / max(1, self._sampler.wall_ns)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _collect(self) -> tuple[Trace, ...]:
        self.missed_deadlines = self._sampler.missed_deadlines
        files = (
            file_trace(channel, samples) for channel, samples in zip(self._files, self._sampler.take(), strict=True)
        )
        polled = (
            polled_trace(channel, samples) for channel, samples in zip(self._polled, self._poller.samples, strict=True)
        )
        found = {trace.rail.key: (trace, failed) for trace, failed in (*files, *polled)}
        self.failed_reads = {key: failed for key, (_, failed) in found.items()}
        return tuple(found[channel.rail.key][0] for channel in self._channels)


def _open_sampler(sysroot: Sysroot, channels: Sequence[FileChannel], period_s: float) -> _Sampler:
    native = importlib.import_module("powerlab.native._native")
    with contextlib.ExitStack() as opened:
        try:
            sources = [[_source(sysroot, path, opened) for path in channel.paths] for channel in channels]
            return cast(_Sampler, native.sampler.Sampler(sources, round(period_s * 1e9)))
        except OSError as error:
            raise PowerlabError(f"a rail cannot be opened ({error.strerror}); `powerlab doctor` says why.") from error


def _source(sysroot: Sysroot, path: str, opened: contextlib.ExitStack) -> str | int:
    """Return where a file lies; a descriptor from the privileged helper where this user may not open it."""
    if not (is_denied(sysroot, path) and is_there(sysroot)):
        return str(sysroot.path(path))
    descriptor = open_denied(sysroot, path)
    opened.callback(os.close, descriptor)  # the sampler keeps a duplicate
    return descriptor


def file_trace(channel: FileChannel, samples: _FileSamples) -> tuple[Trace, int]:
    """Scale or unwrap what the native sampler read; readings that say "unknown" are dropped."""
    time_ns, raw, cost_ns, failed = samples
    if channel.invalid is not None:
        known = raw != channel.invalid
        failed += int(np.count_nonzero(~known))
        time_ns, raw, cost_ns = time_ns[known], raw[known], cost_ns[known]
    if channel.rail.quantity is RailQuantity.ENERGY:
        raw, cut = unwrap(raw, channel.wraps_at, time_ns)
        failed += cut
        time_ns, cost_ns = time_ns[: len(raw)], cost_ns[: len(raw)]
    return _trace(channel, time_ns, raw.astype(np.float64) * channel.scale, cost_ns), failed


def polled_trace(channel: PolledChannel, samples: PolledSamples) -> tuple[Trace, int]:
    """Turn lists into arrays; what is no finite number, and what a counter did not rise to, is dropped."""
    time_ns = np.array(samples.time_ns, dtype=np.int64)
    value = np.array(samples.value, dtype=np.float64)
    cost_ns = np.array(samples.cost_ns, dtype=np.int64)
    kept = np.isfinite(value)
    if channel.rail.quantity is RailQuantity.ENERGY:
        kept[kept] = rising(value[kept])
    failed = samples.failed_reads + int(np.count_nonzero(~kept))
    return _trace(channel, time_ns[kept], value[kept], cost_ns[kept]), failed


def _trace(channel: Channel, time_ns: _Int64s, value: NDArray[np.float64], cost_ns: _Int64s) -> Trace:
    read_cost_ns = int(np.median(cost_ns)) if len(cost_ns) else 0
    return Trace(rail=channel.rail, time_ns=time_ns, value=value, read_cost_ns=read_cost_ns)
