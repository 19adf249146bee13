"""What simulated boards' sensors show over hours, worked out at once; only how late a sampler is, is measured.

The boards' own models say what rails draw while threads come and go, their own sensors what is read of it, and their
own drivers' units what a value is. Samples are as late as the native sampler really was on this machine.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from powerlab.boards.simulator.clusters import clusters_of
from powerlab.boards.simulator.layout import simulation_of
from powerlab.boards.simulator.parts.ina3221 import quantised
from powerlab.boards.simulator.physics import BoardState, Core, PowerModel, components_w, rails_w
from powerlab.boards.simulator.sensor import Sensor
from powerlab.domain.power import Rail, RailQuantity, Trace
from powerlab.domain.quantity import Provenance

_JETSON, _XEON = "jetson-agx-xavier", "intel-xeon"
_COUNTS = 2**32
_RIPPLE = 0.02
"""What a package's power moves from one millisecond to the next, as a share of it."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Runs of one kind: the traces of each, on the same clock one after the other."""

    name: str
    rate_hz: float
    runs: tuple[tuple[Trace, ...], ...]

    @property
    def samples(self) -> int:
        return sum(len(trace.value) for traces in self.runs for trace in traces)


def recordings(scale: float = 1.0) -> tuple[Recording, ...]:
    """Return a long slow recording, a fast one, and many short runs; ``scale`` shortens the first two."""
    late_ns = lateness_ns()
    hour_s, fast_s, short_s, short_runs = 3600 * scale, 600 * scale, 10.0, 24
    jetson = tuple(simulation_of(_JETSON)["rails"])
    return (
        Recording(f"{hour_s / 60:g} min at 10 Hz, 6 rails", 10, (tuple(jetson_rails(jetson, 10, hour_s, late_ns)),)),
        Recording(
            f"{fast_s / 60:g} min at 1 kHz, 2 rails, 2 counters",
            1000,
            ((*jetson_rails(("CPU", "SYS5V"), 1000, fast_s, late_ns), *xeon_counters(1000, fast_s, late_ns)),),
        ),
        Recording(
            f"{short_runs} runs of 10 s at 100 Hz, 6 rails",
            100,
            tuple(
                tuple(jetson_rails(jetson, 100, short_s, late_ns, start_s=number * 2 * short_s))
                for number in range(short_runs)
            ),
        ),
    )


def lateness_ns(seconds: float = 2.0, rate_hz: float = 1000.0) -> NDArray[np.int64]:
    """Return how late, after the earliest, the native sampler read a file here, in ns."""
    native, period_ns = import_module("powerlab.native._native"), round(1e9 / rate_hz)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "power_uw"
        file.write_text("1\n", encoding="utf-8")
        sampler = native.sampler.Sampler([[str(file)]], period_ns)
        sampler.start()
        time.sleep(seconds)
        sampler.stop()
        ((time_ns, *_),) = sampler.take()
    # The first reading is not at a deadline; a phase near the periods' edge would be split in two without the shift.
    phase = np.median((time_ns[1:] - time_ns[1]) % period_ns)
    late = (time_ns[1:] - time_ns[1] - int(phase) + period_ns // 2) % period_ns
    return (late - late.min()).astype(np.int64)


def _times(rate_hz: float, seconds: float, start_s: float, late_ns: NDArray[np.int64], dice: int) -> NDArray[np.int64]:
    period_ns = round(1e9 / rate_hz)
    marks = round(start_s * 1e9) + 3_600_000_123_457 + np.arange(round(seconds * rate_hz)) * period_ns
    return marks + np.random.default_rng(dice).choice(late_ns, len(marks))


def _draws_w(board: str, rate_hz: float, seconds: float, dice: int) -> Iterator[tuple[int, Mapping[str, float]]]:
    """Yield for how many samples which rails draw how much: threads come and go every few seconds."""
    simulation, chance = simulation_of(board), random.Random(dice)
    model = PowerModel.from_document(simulation)
    cores = tuple(
        Core(busy_khz=cluster.freqs_khz[-1], idle_khz=cluster.low_khz, package=cluster.package)
        for cluster in clusters_of(simulation)
        for _ in cluster.cores
    )
    left = round(seconds * rate_hz)
    while left:
        count = min(left, max(1, round(chance.uniform(2, 20) * rate_hz)))
        busy = chance.choice((0, 1, 2, len(cores) // 2, len(cores)))
        gpu = tuple(0.3 for _ in model.gpu_base_w)
        state = BoardState(cores=cores, busy_threads=busy, gpu_share=gpu, emc_hz=model.emc_max_hz)
        yield count, rails_w(simulation["rails"], components_w(model, state))
        left -= count


def jetson_rails(
    names: tuple[str, ...], rate_hz: float, seconds: float, late_ns: NDArray[np.int64], start_s: float = 0.0
) -> Iterator[Trace]:
    """Yield rails of an AGX Xavier as JetPack 5 shows them: mV times mA."""
    table = simulation_of(_JETSON)["ina3221"]
    words = ("update_period_s", "noise_relative", "noise_w")
    spans = list(_draws_w(_JETSON, rate_hz, seconds, round(start_s)))
    for number, name in enumerate(names):
        sensor, noise = Sensor(**{word: table[word] for word in words}), random.Random(number)
        shown, last = [], 0
        for count, drawn in spans:
            for _ in range(count):
                seen_w = sensor.observe(round(len(shown) / rate_hz * 1e9), drawn[name], noise)
                if seen_w is not None:
                    reading = quantised(seen_w, table["supply_mv"], table["shunt_uohm"])
                    last = reading.voltage_mv * reading.current_ma
                shown.append(last)
        yield Trace(
            rail=_rail("ina3221", name, RailQuantity.POWER, 0.192, table["update_period_s"]),
            time_ns=_times(rate_hz, seconds, start_s, late_ns, number) + 20_000 * number,
            value=np.array(shown).astype(np.float64) * 1e-6,
            read_cost_ns=20_000,
        )


def xeon_counters(rate_hz: float, seconds: float, late_ns: NDArray[np.int64]) -> Iterator[Trace]:
    """Yield two energy counters of a Xeon as the kernel shows them, in µJ."""
    range_uj = simulation_of(_XEON)["rapl"]["range_uj"]
    spans = list(_draws_w(_XEON, rate_hz, seconds, 7))
    for number, name in enumerate(("package-0", "package-0/dram")):
        drawn_w = np.concatenate([np.full(count, drawn[name]) for count, drawn in spans])
        rippled_w = drawn_w * np.random.default_rng(number).normal(1.0, _RIPPLE, len(drawn_w))
        counts = (np.cumsum(rippled_w) / rate_hz / (range_uj / (_COUNTS - 1) * 1e-6)).astype(np.int64)
        yield Trace(
            rail=_rail("rapl", name, RailQuantity.ENERGY, range_uj / (_COUNTS - 1) * 1e-6, 0.001),
            time_ns=_times(rate_hz, seconds, 0.0, late_ns, 10 + number) + 20_000 * number,
            value=(counts * range_uj // (_COUNTS - 1)).astype(np.float64) * 1e-6,
            read_cost_ns=20_000,
        )


def _rail(source: str, name: str, quantity: RailQuantity, resolution: float, update_period_s: float) -> Rail:
    return Rail(
        source=source,
        name=name,
        quantity=quantity,
        resolution=resolution,
        relative_error=0.01,
        update_period_s=update_period_s,
        provenance=Provenance.SIMULATED,
    )
