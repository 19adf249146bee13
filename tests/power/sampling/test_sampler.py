"""The native sampler thread on files that change under it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from powerlab.native import _native  # type: ignore[attr-defined]

MILLISECOND_NS = 1_000_000
TIMEOUT_S = 20.0


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.001)


def sampler(*channels: list[Path], period_ns: int = MILLISECOND_NS) -> Any:
    return _native.sampler.Sampler([[str(path) for path in paths] for paths in channels], period_ns)


def wait_rounds(found: Any, more: int) -> None:
    """Wait until every file was read ``more`` times from now on."""
    wanted = found.rounds + more
    wait_until(lambda: found.rounds >= wanted)


def sample_while(
    found: Any, act: Callable[[], None] = lambda: None, rounds: int = 3
) -> list[tuple[Any, Any, Any, int]]:
    """Record what ``act`` does and some rounds after it."""
    found.start()
    act()
    wait_rounds(found, rounds)
    found.stop()
    return list(found.take())


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def sensor(tmp_path: Path) -> Path:
    path = tmp_path / "power1_input"
    path.write_text("42\n")
    return path


def test_samples_are_stamped_in_order_within_the_recording(sensor: Path) -> None:
    before_ns = time.monotonic_ns()
    ((time_ns, value, cost_ns, failed),) = sample_while(sampler([sensor]))
    after_ns = time.monotonic_ns()
    assert len(time_ns) == len(value) == len(cost_ns) >= 2
    assert before_ns <= time_ns[0]
    assert time_ns[-1] <= after_ns
    assert (np.diff(time_ns) > 0).all()
    assert (cost_ns > 0).all()
    assert set(value) == {42}
    assert failed == 0


def test_two_files_are_multiplied(tmp_path: Path, sensor: Path) -> None:
    amps = tmp_path / "curr1_input"
    amps.write_text("-3")
    ((_, value, _, _),) = sample_while(sampler([sensor, amps]))
    assert set(value) == {-126}


@pytest.mark.parametrize("replace", [False, True], ids=["in place", "by another file"])
def test_a_new_value_is_seen(sensor: Path, replace: bool) -> None:
    """Values go up one by one; the sampler sees some of them, in order, and the last one in any case."""
    found = sampler([sensor])
    last = 2000

    def rewrite() -> None:
        with sensor.open("r+b", buffering=0) as handle:
            for value in range(1000, last + 1):
                if replace:
                    fresh = sensor.with_suffix(".new")
                    fresh.write_text(f"{value}\n")
                    fresh.rename(sensor)
                else:
                    os.pwrite(handle.fileno(), f"{value}\n".encode(), 0)

    ((_, value, _, failed),) = sample_while(found, rewrite)
    assert failed == 0
    assert (np.diff(value[value >= 1000]) >= 0).all()
    ((_, value, _, _),) = sample_while(found)
    assert set(value) == {last}


@pytest.mark.parametrize("text", ["", "N/A\n", "1.5\n", "9" * 30, "1" * 70])
def test_a_reading_that_is_no_integer_is_a_gap_and_never_a_value(sensor: Path, text: str) -> None:
    sensor.write_text(text)
    ((time_ns, value, cost_ns, failed),) = sample_while(sampler([sensor]))
    assert len(time_ns) == len(value) == len(cost_ns) == 0
    assert failed >= 1


def test_a_product_that_does_not_fit_is_a_gap(sensor: Path) -> None:
    sensor.write_text(str(2**62))
    ((_, value, _, failed),) = sample_while(sampler([sensor, sensor]))
    assert len(value) == 0
    assert failed >= 1


def test_a_sensor_that_fails_and_comes_back_leaves_a_gap(sensor: Path) -> None:
    found = sampler([sensor], period_ns=200_000)

    def fail_for_a_while() -> None:
        wait_rounds(found, 5)
        sensor.unlink()
        # Until the sampler has looked whether the file is still there, and some rounds more.
        wanted = found.rounds + found.missed_deadlines + 50_000_000 // 200_000 + 2
        wait_until(lambda: found.rounds + found.missed_deadlines >= wanted)
        wait_rounds(found, 10)
        fresh = sensor.with_suffix(".new")
        fresh.write_text("43\n")
        fresh.rename(sensor)

    ((time_ns, value, _, failed),) = sample_while(found, fail_for_a_while)
    assert failed >= 9
    assert set(value) == {42, 43}
    gap_ns = time_ns[np.flatnonzero(value == 43)[0]] - time_ns[np.flatnonzero(value == 42)[-1]]
    assert gap_ns >= 9 * 200_000


def test_a_slow_reader_skips_deadlines_instead_of_hurrying(sensor: Path) -> None:
    found = sampler([sensor], period_ns=1)
    ((time_ns, *_),) = sample_while(found)
    assert found.missed_deadlines > 0
    assert (np.diff(time_ns) > 0).all()


def test_starting_again_forgets_earlier_samples(sensor: Path) -> None:
    found = sampler([sensor])
    sample_while(found)
    sensor.write_text("7\n")
    ((_, value, _, _),) = sample_while(found)
    assert set(value) == {7}


def test_taking_while_running_is_refused(sensor: Path) -> None:
    found = sampler([sensor])
    found.start()
    found.start()
    with pytest.raises(RuntimeError, match="stop"):
        found.take()
    found.stop()
    found.stop()
    assert len(found.take()[0][0]) >= 1


@pytest.mark.parametrize(("channels", "period_ns"), [([[]], 1), ([["a", "b", "c"]], 1), ([], 0), ([], -5)])
def test_bad_arguments(channels: list[list[str]], period_ns: int) -> None:
    with pytest.raises(ValueError, match=r"channel|period"):
        _native.sampler.Sampler(channels, period_ns)


def test_a_missing_file_is_an_os_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        sampler([tmp_path / "nowhere"])


def test_nothing_to_sample_is_fine() -> None:
    assert sample_while(sampler()) == []


def test_a_recording_that_is_stopped_at_once_has_a_sample(sensor: Path) -> None:
    found = sampler([sensor])
    for _ in range(20):
        found.start()
        found.stop()
        assert len(found.take()[0][0]) >= 1


def test_a_long_period_does_not_hold_up_stopping(sensor: Path) -> None:
    found = sampler([sensor], period_ns=3600 * 1_000_000_000)
    found.start()
    wait_until(lambda: found.rounds == 1)
    found.stop()
    ((time_ns, *_),) = found.take()
    assert len(time_ns) == 1


def test_dropping_a_running_sampler_ends_its_thread_and_closes_its_files(sensor: Path) -> None:
    threads_before, descriptors_before = threads(), descriptors()
    for _ in range(20):
        found = sampler([sensor], [sensor, sensor])
        found.start()
        del found
    wait_until(lambda: threads() <= threads_before)
    assert descriptors() == descriptors_before


def test_arrays_outlive_the_sampler(sensor: Path) -> None:
    found = sampler([sensor])
    ((_, value, _, _),) = sample_while(found)
    del found
    assert set(value) == {42}


def test_no_memory_is_lost_over_many_recordings(sensor: Path) -> None:
    def resident_kib() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024

    def record_often() -> None:
        for _ in range(200):
            found = sampler([sensor], [sensor], [sensor])
            found.start()
            found.stop()
            found.take()

    record_often()
    before = resident_kib()
    record_often()
    # Each recording holds three channels of three reserved columns of 32 KiB: 200 lost ones would be 57 MiB.
    assert resident_kib() - before < 8 * 1024
