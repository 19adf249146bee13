"""Whether 95 % means 95 %: simulated machines whose true energy is known, sampled as the sensors sample them.

Each test draws some hundred machines from a seed and counts how often the stated interval holds the truth. The bound
is a little below 0.95, because a count of some hundred scatters by a percent itself. An interval must not be padded
either: each test also bounds its width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from powerlab.analysis.summary import combine, summarise
from powerlab.domain.power import RailQuantity, TotalFormula
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Run, Verdict
from powerlab.domain.statistics import NORMAL_95, mean_half_width
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Workload
from powerlab.measure.energy.rail import rail_energy
from powerlab.measure.energy.total import energy_metrics, total_energy
from powerlab.measure.percentiles.latency import PERCENTILES, TimedInferences, latency_metrics, throughput_metric

TRIALS = 400
LEAST = 0.93
WINDOW_NS = (1_000_000_000, 4_000_000_000)
WINDOW_S = (1.0, 4.0)


@dataclass(frozen=True)
class Load:
    """A power that jumps between levels at random moments; its energy is known exactly."""

    changes_s: np.ndarray
    levels_w: np.ndarray

    @classmethod
    def draw(cls, rng, jumps: int, low_w: float = 5.0, high_w: float = 30.0) -> Load:
        changes = np.concatenate(([-1.0], np.sort(rng.uniform(-1, 6, jumps)), [6.0]))
        return cls(changes, rng.uniform(low_w, high_w, jumps + 1))

    def joules(self, time_s):
        done = np.concatenate(([0.0], np.cumsum(self.levels_w * np.diff(self.changes_s))))
        return np.interp(time_s, self.changes_s, done)

    def watts(self, time_s):
        index = np.searchsorted(self.changes_s, time_s, side="right") - 1
        return self.levels_w[np.clip(index, 0, len(self.levels_w) - 1)]

    @property
    def truth_j(self) -> float:
        """Energy in the window."""
        return float(np.diff(self.joules(WINDOW_S))[0])


def share_inside(trials) -> float:
    """Return how many of (estimate, half-width, truth) hold the truth."""
    return float(np.mean([abs(estimate - truth) <= half for estimate, half, truth in trials]))


def relative_width(trials) -> float:
    return float(np.median([half / truth for _, half, truth in trials]))


def judged(trace, truth_j):
    energy = rail_energy(trace, *WINDOW_NS)
    return energy.energy_j, NORMAL_95 * math.hypot(energy.gain_j, energy.independent_j), truth_j


@pytest.mark.parametrize("update_s", [0.0, 0.001, 0.05])
@pytest.mark.parametrize("sample_s", [0.001, 0.02, 0.1])
def test_a_counters_interval_covers(make_rail, make_trace, update_s, sample_s):
    """A counter like RAPL's: it steps by its resolution, is renewed at its own pace, and is read at another."""
    rng = np.random.default_rng(10)
    rail = make_rail(quantity=RailQuantity.ENERGY, resolution=6.1e-5, update_period_s=update_s)
    trials = []
    for _ in range(TRIALS // 4):
        load = Load.draw(rng, 40)
        read_s = np.arange(0.0, 5.0, sample_s) + rng.uniform(0, sample_s)
        seen_s = read_s if update_s == 0 else np.floor(read_s / update_s + rng.uniform()) * update_s - update_s * 0.5
        seen_s = np.minimum(seen_s, read_s)
        counted = np.floor(load.joules(seen_s) / rail.resolution) * rail.resolution
        trials.append(judged(make_trace(read_s, counted, rail), load.truth_j))
    assert share_inside(trials) >= LEAST
    assert relative_width(trials) <= 3 * (sample_s + update_s) / 3.0 + 1e-4


@pytest.mark.parametrize(
    ("jumps", "sample_s", "widest"), [(5, 0.01, 0.01), (40, 0.01, 0.02), (40, 0.05, 0.06), (200, 0.05, 0.1)]
)
def test_a_power_rails_interval_covers_whatever_happens_between_its_samples(make_trace, jumps, sample_s, widest):
    rng = np.random.default_rng(11)
    trials = []
    for _ in range(TRIALS):
        load = Load.draw(rng, jumps)
        read_s = np.arange(0.0, 5.0, sample_s) + rng.uniform(0, sample_s)
        trials.append(judged(make_trace(read_s, load.watts(read_s)), load.truth_j))
    assert share_inside(trials) >= LEAST
    assert relative_width(trials) <= widest


def test_a_power_rails_interval_covers_gain_offset_step_and_noise_together(make_rail, make_trace):
    """Each machine has one gain and one offset for all its samples, as an INA3221 has; noise is new at each."""
    rng = np.random.default_rng(12)
    rail = make_rail(resolution=0.02, relative_error=0.01, offset=0.04)
    trials = []
    for _ in range(TRIALS):
        load = Load.draw(rng, 20)
        read_s = np.arange(0.0, 5.0, 0.01) + rng.uniform(0, 0.01)
        gain, offset_w = rng.uniform(-rail.relative_error, rail.relative_error), rng.uniform(-rail.offset, rail.offset)
        sensed = load.watts(read_s) * (1 + gain) + offset_w + rng.normal(0, 0.2, read_s.size)
        trials.append(
            judged(make_trace(read_s, np.round(sensed / rail.resolution) * rail.resolution, rail), load.truth_j)
        )
    assert share_inside(trials) >= LEAST
    assert relative_width(trials) <= 0.03


def test_the_gain_error_alone_would_not_be_covered_if_it_were_left_out(make_rail, make_trace):
    """A check of these tests: take the gain out of the budget, and the coverage breaks down."""
    rng = np.random.default_rng(13)
    honest, silent = make_rail(relative_error=0.02), make_rail(relative_error=0.0)
    shares = []
    for rail in (honest, silent):
        trials = []
        for _ in range(100):
            read_s = np.arange(0.0, 5.0, 0.01)
            watts = np.full(read_s.size, 10.0) * (1 + rng.uniform(-0.02, 0.02)) + rng.normal(0, 0.1, read_s.size)
            trials.append(judged(make_trace(read_s, watts, rail), 30.0))
        shares.append(share_inside(trials))
    assert shares[0] >= LEAST
    assert shares[1] < 0.5


@pytest.mark.parametrize("shared", [True, False], ids=["one source", "two sources"])
def test_the_sum_of_two_rails_covers_whether_they_share_their_gain_or_not(make_rail, make_trace, shared):
    rng = np.random.default_rng(14)
    rails = [make_rail("a", relative_error=0.02), make_rail("b", relative_error=0.02)]
    if not shared:
        rails[1] = replace(rails[1], source="hwmon")
    formula = TotalFormula(rails=tuple(rail.key for rail in rails), scope="both")
    trials = []
    for _ in range(TRIALS):
        gain = rng.uniform(-0.02, 0.02)
        truth_j, traces = 0.0, []
        for rail in rails:
            load = Load.draw(rng, 20)
            truth_j += load.truth_j
            read_s = np.arange(0.0, 5.0, 0.01) + rng.uniform(0, 0.01)
            factor = 1 + (gain if shared else rng.uniform(-0.02, 0.02))
            traces.append(make_trace(read_s, load.watts(read_s) * factor, rail))
        energy = total_energy(formula, traces, WINDOW_NS)
        trials.append((energy.energy_j, energy.half_width_j, truth_j))
    assert share_inside(trials) >= LEAST
    assert relative_width(trials) <= 0.04


def test_energy_and_efficiency_per_image_cover_what_their_power_covers(make_rail, make_trace):
    rng = np.random.default_rng(15)
    rail = make_rail(relative_error=0.02)
    formula = TotalFormula(rails=(rail.key,), scope="it")
    hits = {"power_w": 0, "energy_per_image_j": 0, "efficiency_img_per_s_per_w": 0, "energy_above_idle_per_image_j": 0}
    images = 120
    for _ in range(TRIALS // 2):
        gain = 1 + rng.uniform(-0.02, 0.02)
        busy, idle = Load.draw(rng, 20), Load.draw(rng, 5, 2.0, 3.0)
        energies = []
        for load in (busy, idle):
            read_s = np.arange(0.0, 5.0, 0.01) + rng.uniform(0, 0.01)
            trace = make_trace(read_s, load.watts(read_s) * gain, rail)
            energies.append(total_energy(formula, [trace], WINDOW_NS))
        truths = {
            "power_w": busy.truth_j / 3,
            "energy_per_image_j": busy.truth_j / images,
            "efficiency_img_per_s_per_w": images / busy.truth_j,
            "energy_above_idle_per_image_j": (busy.truth_j - idle.truth_j) / images,
        }
        for metric in energy_metrics(energies[0], energies[1], images):
            if metric.name in truths:
                hits[metric.name] += metric.low <= truths[metric.name] <= metric.high
    assert all(count / (TRIALS // 2) >= LEAST for count in hits.values()), hits


def timed(latencies_ns) -> TimedInferences:
    ends = np.cumsum(np.asarray(latencies_ns, dtype=np.int64))
    return TimedInferences(start_ns=ends - np.asarray(latencies_ns, dtype=np.int64), end_ns=ends)


DISTRIBUTIONS = {
    "uniform": (lambda rng, n: rng.uniform(5e6, 15e6, n), lambda p: 5 + 10 * p),
    "exponential": (lambda rng, n: 1e6 + rng.exponential(4e6, n), lambda p: 1 - 4 * math.log(1 - p)),
    "pareto": (lambda rng, n: 5e6 * (1 + rng.pareto(3.0, n)), lambda p: 5 * (1 - p) ** (-1 / 3)),
}


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("count", [30, 120, 800])
def test_a_percentiles_interval_covers_for_any_distribution(distribution, count):
    draw, quantile_ms = DISTRIBUTIONS[distribution]
    rng = np.random.default_rng(16)
    hits = dict.fromkeys(PERCENTILES, 0)
    stated = dict.fromkeys(PERCENTILES, 0)
    for _ in range(TRIALS):
        for metric in latency_metrics(timed(draw(rng, count)), Provenance.MEASURED):
            if metric.low is not None:
                stated[metric.name] += 1
                hits[metric.name] += metric.low <= quantile_ms(PERCENTILES[metric.name]) <= metric.high
    assert stated["latency_p50_ms"] == TRIALS
    for name, number in stated.items():
        assert number in {0, TRIALS}, "whether there is an interval depends on the count alone"
        assert number == 0 or hits[name] / number >= LEAST, name


@pytest.mark.parametrize("repeats", [3, 5, 10])
def test_a_points_interval_covers_the_scatter_between_runs_and_the_gain_they_share(repeats):
    """Every repeat has its own luck; the sensor's gain is the same in all of them and does not average out."""
    rng = np.random.default_rng(17)
    trials = []
    for _ in range(TRIALS):
        gain = rng.uniform(-0.02, 0.02)
        half = 10.0 * NORMAL_95 * 0.02 / math.sqrt(3)
        figures = [
            Metric(name="power_w", value=value, low=value - half, high=value + half, provenance=Provenance.MEASURED)
            for value in 10.0 * (1 + gain) + rng.normal(0, 0.15, repeats)
        ]
        made = combine(figures)
        trials.append((made.value, (made.high - made.low) / 2, 10.0))
    assert share_inside(trials) >= LEAST
    assert relative_width(trials) <= 0.06


@pytest.mark.parametrize("count", [2, 3, 5, 20, 60])
def test_the_mean_of_normal_values_is_covered_as_often_as_stated(count):
    rng = np.random.default_rng(18)
    inside = [
        abs(float(np.mean(values)) - 7.0) <= mean_half_width(values.tolist())
        for values in rng.normal(7.0, 2.0, (2000, count))
    ]
    assert 0.935 <= np.mean(inside) <= 0.965, "neither too narrow nor padded"


def test_a_summary_of_whole_runs_covers_throughput():
    """From inferences to the dashboard's figure: three runs of noisy inferences, whose true rate is known."""
    rng = np.random.default_rng(19)
    point = Point(workload=Workload(model="m", batch_size=2), threads=1, mode="current")
    hits = 0
    for _ in range(200):
        runs = [
            Run(
                id=f"run-{repeat}",
                sweep_id="s",
                point=point,
                repeat=repeat,
                started_at="2026-11-21T09:30:00+00:00",
                window_ns=(1, 2),
                inference_count=200,
                verdict=Verdict.VALID,
                findings=(),
                metrics=(throughput_metric(timed(rng.gamma(9, 1e6, 200) + 1e6), 2, Provenance.MEASURED),),
                total=None,
            )
            for repeat in range(3)
        ]
        metric = summarise(runs)[0].metric("throughput_img_per_s")
        hits += metric.low <= 200.0 <= metric.high
    assert hits / 200 >= LEAST
