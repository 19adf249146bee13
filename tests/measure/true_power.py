"""True power whose energy is known exactly, and sensors that see it as real ones do.

Times are in s from an arbitrary moment, power in W, energy in J. A sensor's errors stay inside what its rail states:
what a test asserts about energy then follows from the statement alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import Rail, RailQuantity, Trace
from powerlab.domain.quantity import Provenance
from powerlab.power.base import FileChannel, PolledChannel
from powerlab.power.sampling.poller import PolledSamples
from powerlab.power.sampling.recorder import file_trace, polled_trace

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TruePower:
    """Power that is linear on every piece, may jump between pieces, and may have a sine on top.

    Piece ``i`` runs from ``edges_s[i]`` to ``edges_s[i + 1]`` and from ``from_w[i]`` to ``to_w[i]``. Before the first
    edge and after the last one the power is what it is there.
    """

    edges_s: Sequence[float]
    from_w: Sequence[float]
    to_w: Sequence[float]
    sine_w: float = 0.0
    sine_hz: float = 1.0
    sine_phase: float = 0.0

    @classmethod
    def steps(cls, edges_s: Sequence[float], levels_w: Sequence[float]) -> TruePower:
        """Return one that is constant on every piece."""
        return cls(edges_s, levels_w, levels_w)

    def joules(self, time_s: object) -> Floats:
        """Return the energy since the first edge; negative before it."""
        t = np.asarray(time_s, dtype=float)
        edges, start, stop = (np.asarray(one, dtype=float) for one in (self.edges_s, self.from_w, self.to_w))
        lengths = np.diff(edges)
        done = np.concatenate(([0.0], np.cumsum((start + stop) / 2 * lengths)))
        piece = np.clip(np.searchsorted(edges, t, side="right") - 1, 0, len(lengths) - 1)
        into = np.clip(t - edges[piece], 0, lengths[piece])
        slope = (stop - start)[piece] / lengths[piece]
        inner = done[piece] + start[piece] * into + slope * into**2 / 2
        outer = np.minimum(t - edges[0], 0) * start[0] + np.maximum(t - edges[-1], 0) * stop[-1]
        omega = 2 * np.pi * self.sine_hz
        sine = self.sine_w / omega * (np.cos(omega * edges[0] + self.sine_phase) - np.cos(omega * t + self.sine_phase))
        return np.asarray(inner + outer + sine)

    def energy_j(self, window_ns: tuple[int, int]) -> float:
        """Return the energy in a window."""
        return float(np.diff(self.joules(np.array(window_ns) / 1e9))[0])

    @property
    def swing_w(self) -> float:
        """Largest minus smallest power."""
        ends = (*self.from_w, *self.to_w)
        return max(ends) - min(ends) + 2 * abs(self.sine_w)


@dataclass(frozen=True, kw_only=True)
class Sensor:
    """One sensor, which has picked its errors within what its rail states.

    Attributes:
        rail: what is stated.
        refresh_s: how often its value is really renewed; at most the rail's update period, and 0 with it.
        phase: where within its refreshing it is at 0 s, from 0 to 1.
        lag_s: how old a value is when it appears; with ``refresh_s`` at most the update period.
        window_s: what a power value is the mean of; at most the update period.
        gain: the reading is the truth divided by 1 + gain.
        offset_w: added to every reading of a power rail.
        start: where a counter stands at 0 J, in steps.
        wraps_at: after how many steps a counter starts at 0 again; None for never.
    """

    rail: Rail
    refresh_s: float = 0.0
    phase: float = 0.0
    lag_s: float = 0.0
    window_s: float = 0.0
    gain: float = 0.0
    offset_w: float = 0.0
    start: int = 0
    wraps_at: int | None = None

    @property
    def step(self) -> float:
        """The step of a raw reading, in W or J."""
        return self.rail.resolution or 1e-6

    def raw(self, power: TruePower, moment_s: Floats) -> NDArray[np.int64]:
        """Return what reads at these moments give, in steps: counters round down, power values to the nearest."""
        shown_s = moment_s
        if self.refresh_s > 0:
            shown_s = (np.floor(moment_s / self.refresh_s + self.phase) - self.phase) * self.refresh_s
        shown_s = shown_s - self.lag_s
        if self.rail.quantity is RailQuantity.ENERGY:
            counted = np.floor(power.joules(shown_s) / (1 + self.gain) / self.step).astype(np.int64) + self.start
            return counted if self.wraps_at is None else counted % self.wraps_at
        over_s = max(self.window_s, 1e-7)
        mean_w = (power.joules(shown_s) - power.joules(shown_s - over_s)) / over_s
        return np.round((mean_w / (1 + self.gain) + self.offset_w) / self.step).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Reads:
    """When a sensor is read.

    Attributes:
        time_ns: the stamps.
        read_ns: what each read takes; at most the least distance of two stamps.
        off: at which part of its read each value was taken, from -1 (as it began) to 1 (as it ended).
        failed: which of them failed.
        uptime_ns: added to every stamp: how long the machine has been up.
    """

    time_ns: NDArray[np.int64]
    read_ns: int = 0
    off: Floats = field(default_factory=lambda: np.zeros(1))
    failed: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(1, dtype=bool))
    uptime_ns: int = 0

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which of them worked."""
        return ~np.broadcast_to(self.failed, self.time_ns.shape)

    @property
    def longest_apart_s(self) -> float:
        """The longest time between two that worked."""
        return float(np.diff(self.time_ns[self.kept]).max()) / 1e9

    def moments_s(self) -> Floats:
        """Return when each value was taken."""
        return np.asarray((self.time_ns + self.off * self.read_ns / 2) / 1e9)

    def raw(self, sensor: Sensor, power: TruePower) -> NDArray[np.int64]:
        """Return what the reads that worked gave."""
        return sensor.raw(power, self.moments_s())[self.kept]

    def file_trace(self, sensor: Sensor, power: TruePower, raw: NDArray[np.int64] | None = None) -> Trace:
        """Return the trace that powerlab makes of these reads of a file; of other raw readings where given."""
        channel = FileChannel(rail=sensor.rail, paths=(), scale=sensor.step, wraps_at=sensor.wraps_at)
        time_ns = self.time_ns[self.kept] + self.uptime_ns
        cost_ns = np.full(time_ns.shape, self.read_ns, dtype=np.int64)
        return file_trace(channel, (time_ns, self.raw(sensor, power) if raw is None else raw, cost_ns, 0))[0]

    def polled_trace(self, sensor: Sensor, power: TruePower, value: Sequence[float] | None = None) -> Trace:
        """Return the trace that powerlab makes of these reads of something that is no file."""
        found = (self.raw(sensor, power) * sensor.step).tolist() if value is None else list(value)
        time_ns = (self.time_ns[self.kept] + self.uptime_ns).tolist()
        samples = PolledSamples(time_ns=time_ns, value=found, cost_ns=[self.read_ns] * len(time_ns))
        return polled_trace(PolledChannel(rail=sensor.rail, read=lambda: 0.0), samples)[0]


def rail_of(quantity: RailQuantity, name: str = "true", **stated: object) -> Rail:
    """Return a rail that states no errors but those given."""
    fields: dict[str, object] = {
        "source": "truth",
        "name": name,
        "quantity": quantity,
        "resolution": 0.0,
        "relative_error": 0.0,
        "update_period_s": 0.0,
        "provenance": Provenance.SIMULATED,
    }
    return Rail(**{**fields, **stated})  # type: ignore[arg-type]
