"""Energy by several methods against the truth, on the same machines in virtual time.

    python -m bench.measuring.energy_methods                  # half a minute
    python -m bench.measuring.energy_methods --machines 1000  # two minutes

The machines are those of the truth tests (tests/truth): loads whose energy is known in closed form, seen by sensors
whose errors are drawn from what their rails state. No file is read and nothing sleeps. Two tables:

- How often powerlab's 95 % interval holds the truth, by what dominates it, with the median error and half-width.
- What other methods would have said of the same window, reading the same sensors: the median and the 95th percentile of
  their error. None of them states an interval.

The other methods, in a few lines each:

- ``zeus``: what ZeusMonitor does. Where there is an energy counter: its value at the window's end less that
  at its start. Else power is polled at half the sensor's update period, 10 to 15 times a second, readings equal to the
  last one are dropped, and the trapezoid is taken over those in the window, from the first to the last of them; 0 J
  where there are fewer than two, as of a coarse sensor under a steady load (a graphics card's step of 1 mW is not).
- ``poll 10 Hz``, ``poll 1 Hz``: the mean of instantaneous readings times the window, as scripts around nvidia-smi or
  tegrastats do. Of a counter: its mean slope between the first and the last reading.
- ``1 s means``: the mean of readings once a second, each the mean of its second, times the window, as MLPerf does with
  the readings of a power analyser.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tests.truth.harness import CLASSES, CLEAN, FOCUSES, STANDARD_S, Recording, dominating, draw_machine
from tests.truth.loads import TrueLoad
from tests.truth.sensors import Reads, TrueSensor

MOST_POLLS_HZ, FEWEST_POLLS_HZ = 15.0, 10.0
FIRST_SEED = 500_000
ALL = "all"
POWERLAB = "powerlab"

Method = Callable[[TrueSensor, TrueLoad, np.random.Generator], float]


def _values(sensor: TrueSensor, load: TrueLoad, time_s: np.ndarray) -> np.ndarray:
    reads = Reads(time_s=time_s, read_s=0.0, off=np.zeros(time_s.size))
    return sensor.trace(load, reads).value


def _polls(load: TrueLoad, rate_hz: float, rng: np.random.Generator) -> np.ndarray:
    start_s, end_s = load.window_s
    return np.arange(start_s + rng.uniform() / rate_hz, end_s, 1 / rate_hz)


def zeus(sensor: TrueSensor, load: TrueLoad, rng: np.random.Generator) -> float:
    """Return what ZeusMonitor would say, in J."""
    if sensor.kind == "counter":
        at_start, at_end = _values(sensor, load, np.array(load.window_s))
        return float(at_end - at_start)
    period_s = min(1 / FEWEST_POLLS_HZ, max(1 / MOST_POLLS_HZ, sensor.rail.update_period_s / 2))
    time_s = _polls(load, 1 / period_s, rng)
    power_w = _values(sensor, load, time_s)
    new = np.concatenate(([True], np.diff(power_w) != 0))
    if np.count_nonzero(new) < 2:
        return 0.0
    return float(np.trapezoid(power_w[new], time_s[new]))


def poll(rate_hz: float) -> Method:
    """Return the method that polls at a rate."""

    def polled(sensor: TrueSensor, load: TrueLoad, rng: np.random.Generator) -> float:
        time_s = _polls(load, rate_hz, rng)
        value = _values(sensor, load, time_s)
        window_s = load.window_s[1] - load.window_s[0]
        if sensor.kind == "counter":
            return float((value[-1] - value[0]) / (time_s[-1] - time_s[0])) * window_s
        return float(value.mean()) * window_s

    return polled


def means(sensor: TrueSensor, load: TrueLoad, rng: np.random.Generator) -> float:
    """Return the mean of one-second means times the window, in J; seconds begin when they like."""
    if sensor.kind == "counter":
        return poll(1.0)(sensor, load, rng)
    start_s, end_s = load.window_s
    time_s = np.arange(start_s + rng.uniform() - 1.0, end_s, 0.01)
    power_w = _values(sensor, load, time_s)
    seconds = power_w[: power_w.size // 100 * 100].reshape(-1, 100).mean(axis=1)
    ends_s = time_s[99::100][: seconds.size]
    return float(seconds[(ends_s >= start_s) & (ends_s <= end_s)].mean()) * (end_s - start_s)


OTHERS: Mapping[str, Method] = {"zeus": zeus, "poll 10 Hz": poll(10.0), "poll 1 Hz": poll(1.0), "1 s means": means}


def _relative_error(recording: Recording, method: Method, rng: np.random.Generator) -> float:
    found_j = sum(method(sensor, recording.load, rng) for sensor in recording.sensors)
    return abs(found_j / recording.truth_j - 1)


def _coverage_table(rows: Sequence[tuple[str, bool, float, float]]) -> None:
    print(f"{'dominated by':<14}{'machines':>9}{'held':>8}{'median error':>14}{'half-width':>12}")
    for name in (ALL, *CLASSES):
        chosen = [row for row in rows if name in {ALL, row[0]}]
        held, error, width = (np.array([row[index] for row in chosen]) for index in (1, 2, 3))
        print(
            f"{name:<14}{len(chosen):>9}{np.mean(held):>8.1%}{100 * np.median(error):>12.3f} %"
            f"{100 * np.median(width):>10.3f} %"
        )


def _methods_table(errors: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
    names = (POWERLAB, *OTHERS)
    print(f"{'sensors':<22}" + "".join(f"{name:>18}" for name in names))
    for group, by_method in errors.items():
        cells = []
        for name in names:
            found = 100 * np.array(by_method[name])
            cells.append(f"{np.median(found):>9.3f} /{np.quantile(found, 0.95):>6.2f}")
        print(f"{group:<22}" + "".join(f"{cell:>18}" for cell in cells))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--machines", type=int, default=300, help="machines of each kind (default 300)")
    count = parser.parse_args().machines
    rows, errors = [], {}
    for focus in (*FOCUSES, CLEAN):
        group = f"{focus}, {STANDARD_S:.0f} s" if focus == CLEAN else focus
        errors[group] = {name: [] for name in (POWERLAB, *OTHERS)}
        for seed in range(FIRST_SEED, FIRST_SEED + count):
            recording = draw_machine(seed, focus, window_s=STANDARD_S if focus == CLEAN else None).record(seed)
            energy, rng = recording.energy(), np.random.default_rng(seed)
            error = abs(energy.energy_j / recording.truth_j - 1)
            errors[group][POWERLAB].append(error)
            for name, method in OTHERS.items():
                errors[group][name].append(_relative_error(recording, method, rng))
            if focus != CLEAN:
                width = energy.half_width_j / recording.truth_j
                rows.append((dominating(energy), recording.held(), error, width))
    print(f"95 % intervals of powerlab over {len(rows)} machines\n")
    _coverage_table(rows)
    print("\nError in % of the true energy, median / 95th percentile, by what is wrong with the sensors\n")
    _methods_table(errors)
    print("\nOnly powerlab states an interval.")


if __name__ == "__main__":
    main()
