"""Observed update period of sensors: read as fast as possible, and note when values change.

    for watched in watch(Sysroot(), ["ina3221:VDD_IN"], duration_s=2.0):
        print(watched.rail.key, watched.update_period_s, watched.read_cost_us)

A sensor's own word for its update period is often missing or wrong: firmware that refreshes once a second behind a
driver that says nothing, an average over a window that the interface does not mention. Energy and the rules that judge
it stand on the period, so it is looked at before it is believed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from powerlab.domain.power import Rail, Trace
from powerlab.power.sampling.counters import observed_update_period_s
from powerlab.power.sampling.recorder import Recorder
from powerlab.sysroot import Sysroot

FASTEST_S = 0.001
"""Files are read a thousand times a second; what is polled, as often as its reads take, and no more often than that."""

_RESOLVED_READS = 2.0
_DISAGREES = 1.1
_LIVELY_VALUES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What one rail was seen to do.

    Attributes:
        rail: the rail, as its source describes it.
        update_period_s: how often its value was renewed; None where it did not change often enough to tell.
        read_cost_us: the median time one read takes, in µs; None where no read worked.
        read_period_s: the median time between two reads: changes cannot be seen to come faster.
        longest_unchanged_s: the longest time in which the value stayed what it was.
        readings: how many reads worked.
        failed_reads: how many did not.
        changes_per_s: how often the value changed.
        values: how many different values were seen.
    """

    rail: Rail
    update_period_s: float | None
    read_cost_us: float | None
    read_period_s: float
    longest_unchanged_s: float
    readings: int
    failed_reads: int
    changes_per_s: float
    values: int

    @property
    def at_every_read(self) -> bool:
        """Whether the value was a new one at about every read, so that its own period cannot be told."""
        return self.update_period_s is not None and self.update_period_s < _RESOLVED_READS * self.read_period_s

    @property
    def lively(self) -> bool:
        """Whether the value's noise is wider than its step, so that it goes on changing at every load.

        Noise narrower than a step shows as well, where the power happens to lie on the border between two steps, and
        stops where it does not: so two neighbouring values prove nothing, and a third may be a load's.
        """
        return self.values >= _LIVELY_VALUES and self.update_period_s is not None


def watch(sysroot: Sysroot, rail_keys: Sequence[str], duration_s: float) -> tuple[Watched, ...]:
    """Read rails as fast as they can be read for a time, and say what was seen, in the order asked for.

    The rails of one source are read one after the other, as in a measurement; sources do not wait for each other.

    Raises:
        PowerlabError: a rail is not there or cannot be opened. One that gives no reading is an answer.
    """
    sources: dict[str, list[str]] = {}
    for key in dict.fromkeys(rail_keys):
        sources.setdefault(key.partition(":")[0], []).append(key)
    seen: dict[str, Watched] = {}
    with ExitStack() as stack:
        recorders = [
            stack.enter_context(Recorder(sysroot, keys, FASTEST_S, every_period=True)) for keys in sources.values()
        ]
        if recorders:
            time.sleep(duration_s)
        for recorder in recorders:
            for trace in recorder.stop_anyway():
                seen[trace.rail.key] = describe(trace, recorder.failed_reads[trace.rail.key])
    return tuple(seen[key] for key in rail_keys)


def describe(trace: Trace, failed_reads: int = 0) -> Watched:
    """Return what a trace shows of its sensor."""
    span_s = float(trace.time_ns[-1] - trace.time_ns[0]) * 1e-9 if len(trace.time_ns) else 0.0
    changed_at_ns = trace.time_ns[1:][trace.value[1:] != trace.value[:-1]]
    held_ns = np.diff(np.concatenate([trace.time_ns[:1], changed_at_ns, trace.time_ns[-1:]]))
    return Watched(
        rail=trace.rail,
        update_period_s=observed_update_period_s(trace),
        read_cost_us=trace.read_cost_ns * 1e-3 if len(trace.time_ns) else None,
        read_period_s=float(np.median(np.diff(trace.time_ns))) * 1e-9 if len(trace.time_ns) > 1 else 0.0,
        longest_unchanged_s=float(held_ns.max()) * 1e-9 if len(held_ns) else 0.0,
        readings=len(trace.time_ns),
        failed_reads=failed_reads,
        changes_per_s=len(changed_at_ns) / span_s if span_s > 0 else 0.0,
        values=len(np.unique(trace.value)),
    )


def corrected(watched: Watched) -> Rail:
    """Return the rail with the period that was seen, where that is longer than the stated one; else the rail itself.

    A shorter one is no news: what was seen may be two registers that are renewed one after the other. Nor is one that
    is as long as the time between two reads: then every read was fresh. The figure has two digits, so that the same
    sensor is the same rail at the next sweep, too.
    """
    seen_s, rail = watched.update_period_s, watched.rail
    if seen_s is None or watched.at_every_read or seen_s < _DISAGREES * rail.update_period_s:
        return rail
    return replace(rail, update_period_s=float(f"{seen_s:.2g}"))
