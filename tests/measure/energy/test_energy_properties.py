"""Whatever power does and whatever happens to its samples: its energy lies in its interval, or a rule voids the run.

Truth is known by construction (:mod:`tests.measure.true_power`), and the sensor's errors lie within what its rail
states. Then two things follow without any statistics, for an energy counter from the fact that energy never falls, for
a power rail where each level lasts long enough to be seen:

- of a counter, the figure is no further off than the readings before and after the window's ends allow
  (:func:`counter_bound_j`);
- of a power rail, no further than every step times how far it may be displaced (:func:`power_bound_j`).

These are bounds of the figure. Whether the 95 % interval covers is a matter of counting, see ``test_energy_coverage``
and ``tests/truth``.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings, target
from hypothesis import strategies as st

from powerlab.domain.power import RailQuantity, TotalFormula, Trace
from powerlab.domain.run import Verdict
from powerlab.domain.validity import ENERGY_RULES
from powerlab.measure.energy.rail import covers, rail_energy
from powerlab.measure.validity import Evidence, judge
from tests.measure.true_power import Reads, Sensor, TruePower, rail_of

COUNTER, POWER = RailQuantity.ENERGY, RailQuantity.POWER
ROUNDING_J = 2e-5
"""What a sensor of a stated step of 0 still rounds to in these tests, at both ends, and float64."""


LATEST = 1.5
"""A reading is this many update periods old at most."""


def counter_bound_j(trace, window_ns) -> float:
    """Return how far the counter's difference may be off: what was read by an end is not too much, what is read later
    than it may be old is not too little. The gain acts on the truth, and so on the other errors too. Where the readings
    do not reach that far there is no bound.
    """
    half_ns, late_ns = trace.read_cost_ns / 2, LATEST * trace.rail.update_period_s * 1e9
    apart_j = []
    for end_ns in window_ns:
        before = int(np.searchsorted(trace.time_ns, end_ns - half_ns, side="right")) - 1
        after = int(np.searchsorted(trace.time_ns, end_ns + late_ns + half_ns, side="left"))
        if before < 0 or after >= trace.time_ns.size:
            return math.inf
        apart_j.append(float(trace.value[after] - trace.value[before]))
    energy = rail_energy(trace, *window_ns)
    gain = trace.rail.relative_error
    return (sum(apart_j) + 2 * trace.rail.resolution + ROUNDING_J) * (1 + gain) + math.sqrt(3) * energy.gain_j


def power_bound_j(trace, window_ns) -> float:
    """Return how far the trapezoid may be off where every level is seen in at least one sample.

    Each step that was seen, and the difference of the powers at both ends, is displaced by at most what a sample may be
    old, and by the time between two samples. Rounding may hide up to a sensor's step of each step.
    """
    energy = rail_energy(trace, *window_ns)
    rail, apart_s = trace.rail, float(np.diff(trace.time_ns).max()) / 1e9
    displaced_s = 2 * LATEST * rail.update_period_s + apart_s + trace.read_cost_ns / 1e9
    changes = np.count_nonzero(np.diff(trace.value)) + 2
    moved_w = float(np.abs(np.diff(trace.value)).sum()) + 2 * float(np.ptp(trace.value))
    constant_w = rail.resolution / 2 + rail.offset + changes * (rail.resolution or 1e-6) * displaced_s
    window_s = (window_ns[1] - window_ns[0]) / 1e9
    other_j = moved_w * displaced_s + constant_w * max(1.0, window_s) + ROUNDING_J
    return other_j * (1 + rail.relative_error) + math.sqrt(3) * energy.gain_j


def findings_of(trace, window_ns, period_s, **evidence):
    return judge(
        Evidence(
            window_ns=window_ns,
            inference_count=100,
            total=TotalFormula(rails=(trace.rail.key,), scope="s"),
            traces=(trace,),
            sample_period_s=period_s,
            **evidence,
        )
    )


def voided(findings) -> bool:
    return any(finding.verdict is Verdict.VOID and finding.rule in ENERGY_RULES for finding in findings)


@st.composite
def reads(draw, window_ns, margin_s, period_s, read_s=0.0):
    """Reads around a window: jittered, some failed, the first or the last ones missing."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    planned = np.arange(window_ns[0] / 1e9 - margin_s, window_ns[1] / 1e9 + margin_s + period_s, period_s)
    jitter_s = rng.uniform(-1, 1, planned.size) * draw(st.floats(0, 0.9)) * (period_s - read_s) / 2
    failing = rng.uniform(size=planned.size) < draw(st.sampled_from([0.0, 0.0, 0.05, 0.4]))
    for _ in range(draw(st.integers(0, 2))):
        first, count = draw(st.integers(0, planned.size - 1)), draw(st.integers(1, 12))
        failing[first : first + count] = True
    failing[: draw(st.sampled_from([0, 0, 0, 3, 40]))] = True
    failing[planned.size - draw(st.sampled_from([0, 0, 0, 3, 40])) :] = True
    assume(np.count_nonzero(~failing) >= 2)
    return Reads(
        time_ns=np.round((planned + jitter_s) * 1e9).astype(np.int64),
        read_ns=round(read_s * 1e9),
        off=rng.uniform(-1, 1, planned.size) if draw(st.booleans()) else np.full(planned.size, 1.0),
        failed=failing,
        uptime_ns=draw(st.sampled_from([0, 10**13, 10**17])),
    )


@st.composite
def aged(draw, rail, **fields):
    """A sensor that is renewed as often as its rail states, or oftener and with a lag."""
    update_s = rail.update_period_s
    refresh_s = update_s * draw(st.sampled_from([1.0, 0.5, 0.1]))
    return Sensor(
        rail=rail,
        refresh_s=refresh_s,
        phase=draw(st.floats(0, 1)),
        lag_s=(update_s - refresh_s) * draw(st.sampled_from([0.0, 0.5, 1.0])),
        gain=rail.relative_error * draw(st.floats(-1, 1)),
        **fields,
    )


@st.composite
def levels(draw, count):
    """Levels in W: hypothesis' own, which are often the same or 0, or such as differ."""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.lists(st.floats(0, 300), min_size=count, max_size=count))
    return np.random.default_rng(draw(st.integers(0, 2**32))).choice([0.0, 7.0, 60.0, 290.0], count).tolist()


@st.composite
def beginnings(draw, lengths, window_ns, reach_s):
    """Return when the pieces of these lengths begin: anywhere, or with one just about an end of the window."""
    edges = np.concatenate(([0.0], np.cumsum(lengths)))
    if draw(st.integers(0, 2)) == 0:
        return edges + draw(st.floats(0, 4))
    at_s = draw(st.sampled_from(window_ns)) / 1e9 + reach_s * draw(st.floats(-2, 1))
    return edges - draw(st.sampled_from(edges.tolist())) + at_s


@st.composite
def any_power(draw, window_ns, reach_s):
    """Jumps, ramps, and a sine that never reaches below 0 W."""
    count = draw(st.integers(2, 8))
    lengths = draw(st.lists(st.floats(0.001, 4), min_size=count, max_size=count))
    start = draw(levels(count))
    stop = draw(st.one_of(st.just(start), levels(count)))
    return TruePower(
        edges_s=draw(beginnings(lengths, window_ns, reach_s)).tolist(),
        from_w=start,
        to_w=stop,
        sine_w=min(*start, *stop) * draw(st.sampled_from([0.0, 0.5, 1.0])),
        sine_hz=draw(st.floats(0.05, 60)),
        sine_phase=draw(st.floats(0, 6)),
    )


@st.composite
def recordings(draw, quantity):
    """A rail, a window, and reads around it at the margin that powerlab keeps; the stamps of neighbours never meet."""
    period_s = draw(st.sampled_from([0.005, 0.01, 0.03, 0.1, 0.3]))
    start_s = draw(st.floats(4, 6))
    length_s = draw(st.one_of(st.floats(0.05, 2), st.floats(2, 8)))
    window_ns = (round(start_s * 1e9), round((start_s + length_s) * 1e9))
    wrong = draw(st.sets(st.sampled_from(["step", "gain", "age", "read"])))
    rail = rail_of(
        quantity,
        resolution=draw(st.sampled_from([6.1e-5, 0.01, 0.5])) if "step" in wrong else 0.0,
        relative_error=draw(st.sampled_from([0.01, 0.05, 0.6])) if "gain" in wrong else 0.0,
        update_period_s=draw(st.sampled_from([0.001, 0.02, 0.1, 0.5, 1.0])) if "age" in wrong else 0.0,
    )
    margin_s = min(2.0, max(0.1, 3 * period_s, 2 * rail.update_period_s))
    read_s = period_s * draw(st.sampled_from([0.001, 0.5])) if "read" in wrong else 0.0
    return rail, window_ns, draw(reads(window_ns, margin_s, period_s, read_s)), period_s


def reaches(trace, window_ns, reads_) -> bool:
    """Whether readings lie outside what an end of the window may reach: else powerlab has to extend the counter."""
    half_ns = reads_.read_ns / 2
    until_ns = window_ns[1] + trace.rail.update_period_s * 1e9 + half_ns
    return bool(trace.time_ns[0] <= window_ns[0] - half_ns and trace.time_ns[-1] >= until_ns)


def up(window_ns, reads_):
    return tuple(one + reads_.uptime_ns for one in window_ns)


@given(recording=recordings(COUNTER), wraps=st.sampled_from([None, 1, 4]), data=st.data())
@settings(max_examples=300, deadline=None)
def test_a_counters_energy_lies_within_its_bounds_whatever_the_power_did(recording, wraps, data):
    """Wraps, gaps, jitter, failed reads, old values, a coarse step, a slow read and a wrong gain, all together."""
    rail, window_ns, reads_, period_s = recording
    power = data.draw(any_power(window_ns, rail.update_period_s + period_s))
    sensor = data.draw(aged(rail, start=data.draw(st.integers(0, 10**6))))
    if wraps is not None:
        largest = int(np.diff(reads_.raw(sensor, power)).max())
        sensor = replace(sensor, wraps_at=max(10, 2 * largest + 2) * wraps)
    trace = reads_.file_trace(sensor, power)
    shown_ns = up(window_ns, reads_)
    findings = findings_of(trace, shown_ns, period_s)
    if not covers(trace, *shown_ns):
        assert voided(findings)
        return
    assume(reaches(trace, shown_ns, reads_))
    off_j = abs(rail_energy(trace, *shown_ns).energy_j - power.energy_j(window_ns))
    bound_j = counter_bound_j(trace, shown_ns)
    target(off_j / bound_j)
    assert off_j <= bound_j


@given(recording=recordings(POWER), data=st.data())
@settings(max_examples=300, deadline=None)
def test_a_power_rails_energy_lies_within_its_bounds_where_every_level_is_seen(recording, data):
    """Averaging, old values, jitter, gaps, slow reads, a wrong gain and offset, a coarse step, all together."""
    rail, window_ns, reads_, period_s = recording
    rail = replace(rail, offset=data.draw(st.sampled_from([0.0, 0.3])))
    sensor = data.draw(aged(rail))
    sensor = replace(
        sensor,
        window_s=rail.update_period_s * data.draw(st.sampled_from([0.0, 0.3, 1.0])),
        offset_w=rail.offset * data.draw(st.floats(-1, 1)),
    )
    seen_s = 2 * rail.update_period_s + 2 * reads_.longest_apart_s + reads_.read_ns / 1e9
    lengths = seen_s * (1 + np.array(data.draw(st.lists(st.floats(0, 1), min_size=2, max_size=30))))
    power = TruePower.steps(
        data.draw(beginnings(lengths, window_ns, seen_s / 2)).tolist(), data.draw(levels(len(lengths)))
    )
    trace = reads_.file_trace(sensor, power)
    shown_ns = up(window_ns, reads_)
    findings = findings_of(trace, shown_ns, period_s)
    if not covers(trace, *shown_ns):
        assert voided(findings)
        return
    off_j = abs(rail_energy(trace, *shown_ns).energy_j - power.energy_j(window_ns))
    bound_j = power_bound_j(trace, shown_ns)
    target(off_j / bound_j)
    assert off_j <= bound_j


@given(data=st.data(), step_j=st.floats(0.01, 5), watts=st.floats(0.1, 100))
def test_a_counter_read_just_at_both_ends_is_off_by_a_step_at_most(data, step_j, watts):
    """What remains is rounding down at either end, and where between two readings the counter stepped."""
    rail = rail_of(COUNTER, resolution=step_j)
    sensor = Sensor(rail=rail, start=data.draw(st.integers(0, 1000)))
    power = TruePower.steps([data.draw(st.floats(-1, 0)), 20.0], [watts])
    reads_ = Reads(time_ns=np.arange(0, 11, dtype=np.int64) * 10**9)
    trace = reads_.file_trace(sensor, power)
    window_ns = (10**9, 9 * 10**9)
    energy = rail_energy(trace, *window_ns)
    assert energy.other_j["edge"] <= step_j
    assert abs(energy.energy_j - power.energy_j(window_ns)) <= counter_bound_j(trace, window_ns)
    assert counter_bound_j(trace, window_ns) <= 2 * step_j + 2 * ROUNDING_J


def test_a_burst_within_the_read_at_an_end_is_in_the_bound():
    """A counter read slowly, and all power comes while it is read: the mean power says nothing about that."""
    power = TruePower.steps([0.0, 3.0, 3.02, 9.0], [1.0, 290.0, 1.0])
    reads_ = Reads(time_ns=np.arange(0, 60, dtype=np.int64) * 10**8, read_ns=5 * 10**7, off=np.ones(60))
    trace = reads_.file_trace(Sensor(rail=rail_of(COUNTER)), power)
    window_ns = (10**9, 3 * 10**9)
    off_j = abs(rail_energy(trace, *window_ns).energy_j - power.energy_j(window_ns))
    assert 5 < off_j <= counter_bound_j(trace, window_ns)


@given(recording=recordings(COUNTER), data=st.data())
def test_a_counter_that_is_set_back_voids_the_run_or_looks_like_a_wrap_of_few_steps(recording, data):
    """Right before its end a reset cannot be told from a wrap; what is then counted is a hundred steps at most."""
    rail, window_ns, reads_, period_s = recording
    watts = data.draw(st.floats(1, 300))
    power = TruePower.steps([0.0, 20.0], [watts])
    sensor = Sensor(
        rail=rail, start=data.draw(st.integers(0, 10**9)), wraps_at=data.draw(st.sampled_from([None, 10**9]))
    )
    raw = reads_.raw(sensor, power)
    back = data.draw(st.integers(1, raw.size - 1))
    raw = np.concatenate([raw[:back], raw[back:] - raw[back]])
    trace = reads_.file_trace(sensor, power, raw % 10**9 if sensor.wraps_at else raw)
    shown_ns = up(window_ns, reads_)
    if voided(findings_of(trace, shown_ns, period_s)):
        return
    steps = np.diff(trace.value)
    gaps = float(np.diff(reads_.time_ns[reads_.kept]).max() / np.median(np.diff(reads_.time_ns[reads_.kept])))
    too_much_j = 100 * gaps * float(np.sort(steps)[-2:][0])
    off_j = abs(rail_energy(trace, *shown_ns).energy_j - power.energy_j(window_ns))
    few = np.count_nonzero(steps) <= 11
    assert few or off_j <= counter_bound_j(trace, shown_ns) + too_much_j


@given(recording=recordings(COUNTER), data=st.data())
def test_a_polled_counter_that_is_set_back_voids_the_run_or_ended_after_it(recording, data):
    rail, window_ns, reads_, period_s = recording
    power = TruePower.steps([0.0, 20.0], [data.draw(st.floats(1, 300))])
    sensor = Sensor(rail=rail, start=data.draw(st.integers(0, 10**6)))
    value = reads_.raw(sensor, power) * sensor.step
    back = data.draw(st.integers(1, value.size - 1))
    value = np.concatenate([value[:back], value[back:] - value[back] * data.draw(st.floats(0.01, 1))])
    trace = reads_.polled_trace(sensor, power, value.tolist())
    shown_ns = up(window_ns, reads_)
    lasting = np.count_nonzero(value[back:] < value[back - 1]) >= 2
    if not lasting or voided(findings_of(trace, shown_ns, period_s)):
        return
    assert trace.time_ns[-1] >= shown_ns[1]
    assume(reaches(trace, shown_ns, reads_))
    off_j = abs(rail_energy(trace, *shown_ns).energy_j - power.energy_j(window_ns))
    assert off_j <= counter_bound_j(trace, shown_ns)


@given(
    start_s=st.floats(4.5, 9.0),
    held_s=st.floats(0.0, 6.0),
    rate_hz=st.sampled_from([5.0, 20.0, 50.0]),
    quantity=st.sampled_from([COUNTER, POWER]),
)
def test_a_sensor_that_stood_still_for_a_tenth_of_the_window_voids_the_run(start_s, held_s, rate_hz, quantity):
    """Before it does, what it hides is a share of the window; a counter only matters at the window's ends."""
    rng = np.random.default_rng(3)
    window_ns = (5 * 10**9, 10 * 10**9)
    times = np.round(np.arange(4, 12, 1 / rate_hz), 6)
    value = np.cumsum(rng.uniform(1, 2, times.size)) if quantity is COUNTER else rng.uniform(10, 30, times.size)
    frozen = (times >= start_s) & (times <= start_s + held_s)
    if np.any(frozen):
        value[frozen] = value[np.flatnonzero(frozen)[0]]
    trace = Trace(rail=rail_of(quantity), time_ns=np.round(times * 1e9).astype(np.int64), value=value)
    findings = findings_of(trace, window_ns, 1 / rate_hz, lively={trace.rail.key: rate_hz})
    stale = [finding.verdict for finding in findings if finding.rule == "stale-sensor"]
    first_s, last_s = (float(times[frozen][end]) if np.any(frozen) else 4.0 for end in (0, -1))
    lasted_s, inside_s = last_s - first_s, float(np.ptp(np.clip([first_s, last_s], 5, 10)))
    across = first_s < 5 < last_s or last_s > 10
    seen = lasted_s >= 1.0 + 1e-6 and lasted_s * rate_hz >= 20 + 1e-6 and (quantity is POWER or across)
    if seen and inside_s > 0.5 + 2 / rate_hz:
        assert stale == [Verdict.VOID]
    # A counter that misses ten of its steps and does not catch up has stopped; a power rail may repeat itself longer.
    readings = lasted_s * rate_hz
    short = readings < 9 if quantity is COUNTER else lasted_s < 1.0 - 2 / rate_hz or readings < 18
    if short or inside_s < 0.1 - 1 / rate_hz:
        assert not stale
