"""Sensors in virtual time: what powerlab would have read of a true load, with errors drawn from what a rail states."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from powerlab.boards.simulator.sensor import Sensor
from powerlab.domain.power import Rail, RailQuantity, Trace
from tests.truth.loads import Floats, TrueLoad


@dataclass(frozen=True, kw_only=True, eq=False)
class Reads:
    """When a source is read.

    Attributes:
        time_s: the stamps, half-way through each read.
        read_s: how long a read takes.
        off: at which part of its read each value is taken, from -1 (as it begins) to 1 (as it ends).
    """

    time_s: Floats
    read_s: float
    off: Floats

    @property
    def moments_s(self) -> Floats:
        """When each value is taken."""
        return np.asarray(self.time_s + self.off * self.read_s / 2)

    def without(self, lost: NDArray[np.bool_]) -> Reads:
        """Return those that did not fail."""
        return replace(self, time_s=self.time_s[~lost], off=self.off[~lost])


@dataclass(frozen=True, kw_only=True)
class TrueSensor:
    """One rail's sensor, which has picked its errors.

    Attributes:
        rail: what is stated.
        share: the part of the load that flows through the rail.
        kind: ``hold`` shows the present power, ``mean`` its mean over a refresh period, ``counter`` counts,
            ``filter`` is the board simulator's own model with a first-order lag. ``part-time`` shows the mean over the
            last part of a refresh period that the rail states as seen, ``part-time-counter`` adds these up.
        refresh_s: how often its value is renewed; 0: at every read.
        phase: where in its refreshing it is at 0 s, from 0 to 1.
        delay_s: how old a value is when it appears; for ``filter`` the time constant.
        gain: the truth is the reading times 1 + gain.
        offset_w: added to every reading of power.
        noise_w: the standard deviation of each new value's noise.
        seed: of the noise.
    """

    rail: Rail
    share: float
    kind: str
    refresh_s: float
    phase: float
    delay_s: float
    gain: float
    offset_w: float
    noise_w: float
    seed: int

    def trace(self, load: TrueLoad, reads: Reads) -> Trace:
        """Return what is recorded."""
        counts = self.kind.endswith("counter")
        value = self.counted(load, reads.moments_s) if counts else self.shown_w(load, reads.moments_s)
        return Trace(
            rail=self.rail,
            time_ns=np.round(reads.time_s * 1e9).astype(np.int64),
            value=value,
            read_cost_ns=round(reads.read_s * 1e9),
        )

    def truth_j(self, load: TrueLoad) -> float:
        """Return the rail's true energy in the window."""
        return self.share * load.energy_j(*load.window_s)

    def counted(self, load: TrueLoad, moments_s: Floats) -> Floats:
        """Return a counter's readings: rounded down, as counters are."""
        renewed_s = self._renewed(moments_s)
        found_j = load.joules(renewed_s - self.delay_s)
        if self.kind == "part-time-counter":
            periods = np.round((renewed_s - renewed_s[0]) / self.refresh_s).astype(int)
            every_s = renewed_s[0] + self.refresh_s * np.arange(periods[-1] + 1)
            found_j = (np.cumsum(self._seen_w(load, every_s)) * self.refresh_s)[periods]
        true_j = self.share * found_j / (1 + self.gain)
        step = self.rail.resolution
        return np.floor(true_j / step) * step if step else true_j

    def shown_w(self, load: TrueLoad, moments_s: Floats) -> Floats:
        """Return a power rail's readings: rounded to the nearest step."""
        if self.kind == "filter":
            sensed = self._filtered_w(load, moments_s)
        else:
            at_s = self._renewed(moments_s) - self.delay_s
            if self.kind == "part-time":
                sensed = self._seen_w(load, self._renewed(moments_s))
            elif self.kind == "mean" and self.refresh_s:
                sensed = (load.joules(at_s) - load.joules(at_s - self.refresh_s)) / self.refresh_s
            else:
                sensed = load.watts(at_s)
        new = np.concatenate(([True], np.diff(self._renewed(moments_s)) > 0))
        noise = np.random.default_rng(self.seed).normal(0.0, self.noise_w, moments_s.size)[np.cumsum(new) - 1]
        shown = self.share * sensed / (1 + self.gain) + self.offset_w + noise
        step = self.rail.resolution
        return np.round(shown / step) * step if step else shown

    def _seen_w(self, load: TrueLoad, renewed_s: Floats) -> Floats:
        """Return the mean power over the part that is seen of the refresh periods that end at these times."""
        at_s, seen_s = renewed_s - self.delay_s, self.rail.seen_share * self.refresh_s
        return np.asarray((load.joules(at_s) - load.joules(at_s - seen_s)) / seen_s)

    def _renewed(self, moments_s: Floats) -> Floats:
        if not self.refresh_s:
            return moments_s
        return np.asarray((np.floor(moments_s / self.refresh_s + self.phase) - self.phase) * self.refresh_s)

    def _filtered_w(self, load: TrueLoad, moments_s: Floats) -> Floats:
        """Let the board simulator's sensor look at each change of the load and at each read, in order.

        It takes the power as constant between two looks, so a ramp is looked at two hundred times a second.
        """
        sensor = Sensor(self.refresh_s or 1e-6, lag_s=self.delay_s)
        first_s, last_s = moments_s[0] - 5 * self.delay_s - 2 * self.refresh_s, moments_s[-1]
        inside = load.edges_s[(load.edges_s > first_s) & (load.edges_s < last_s)]
        curved = load.ramp_w_per_s != 0 or load.approach_w != 0
        more = np.arange(first_s, last_s, 5e-3) if curved else np.empty(0)
        looks = np.unique(np.concatenate(([first_s], inside, more, moments_s)))
        since = np.diff(looks, prepend=looks[0] - 1e-6)
        drawn = np.diff(load.joules(np.concatenate(([looks[0] - 1e-6], looks)))) / since
        shown, found, quiet = drawn[0], np.empty(looks.size), random.Random(0)
        for index, (at_ns, power_w) in enumerate(zip(np.round(looks * 1e9).astype(int).tolist(), drawn, strict=True)):
            shown = shown if (new := sensor.observe(at_ns, float(power_w), quiet)) is None else new
            found[index] = shown
        return found[np.searchsorted(looks, moments_s)]


def total_lag_s(sensor: TrueSensor) -> float:
    """Return how old a reading is on average: its delay, half of what it holds, half of what it averages."""
    averaged_s = sensor.refresh_s if sensor.kind == "mean" else 0.0
    return sensor.delay_s + sensor.refresh_s / 2 + averaged_s / 2


POWER, ENERGY = RailQuantity.POWER, RailQuantity.ENERGY
