"""What watching sensors finds out: how often they really change, what a read costs, and what they fail to say."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Rail, RailQuantity, Trace
from powerlab.domain.quantity import Provenance
from powerlab.power.base import PolledChannel
from powerlab.power.sampling import recorder as recorder_module
from powerlab.power.sampling.update_period import Watched, corrected, describe, watch
from powerlab.sysroot import Sysroot

Machine = Callable[[str], Sysroot]
RAIL = Rail(
    source="fake",
    name="rail",
    quantity=RailQuantity.POWER,
    resolution=0.0,
    relative_error=0.0,
    update_period_s=0.0,
    provenance=Provenance.MEASURED,
)
MS = 1_000_000


def trace(values: list[float] | np.ndarray, period_ms: float = 1.0, rail: Rail = RAIL) -> Trace:
    time_ns = (np.arange(len(values)) * period_ms * MS).astype(np.int64)
    return Trace(rail=rail, time_ns=time_ns, value=np.asarray(values, dtype=np.float64), read_cost_ns=2500)


@contextmanager
def moved(path: str, period_s: float) -> Iterator[None]:
    """A sensor file that gets a new value once a period."""
    stop = threading.Event()
    handle = os.open(path, os.O_WRONLY)

    def move() -> None:
        value = 0
        while not stop.wait(period_s):
            value += 1
            os.pwrite(handle, f"{22040000 + value:<12d}\n".encode(), 0)

    thread = threading.Thread(target=move)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        os.close(handle)


def test_a_file_that_moves_and_one_that_does_not(machine: Machine) -> None:
    sysroot = machine("xgene")
    with moved(str(sysroot.path("/sys/class/hwmon/hwmon0/power1_input")), 0.02):
        moving, still = watch(sysroot, ["hwmon:CPU power", "hwmon:IO power"], 0.6)
    assert moving.rail.name == "CPU power"
    assert moving.update_period_s is not None
    assert moving.update_period_s >= 0.019
    assert moving.lively
    assert moving.failed_reads == 0
    assert moving.read_cost_us is not None
    assert moving.read_cost_us > 0
    assert still.update_period_s is None
    assert still.longest_unchanged_s >= 0.5
    assert not still.lively


def test_the_order_and_the_rails_asked_for_come_back(machine: Machine) -> None:
    keys = ["hwmon:IO power", "hwmon:CPU power"]
    assert [one.rail.key for one in watch(machine("xgene"), keys, 0.01)] == keys


def test_no_rails_take_no_time(machine: Machine) -> None:
    before = time.monotonic()
    assert watch(machine("nothing"), [], 3600.0) == ()
    assert time.monotonic() - before < 60


def test_a_rail_that_is_not_there_is_refused(machine: Machine) -> None:
    with pytest.raises(PowerlabError, match="no readable rail hwmon:nonsense"):
        watch(machine("xgene"), ["hwmon:nonsense"], 0.01)


def test_a_rail_that_never_answers_is_an_answer(machine: Machine) -> None:
    sysroot = machine("xgene")
    path = sysroot.path("/sys/class/hwmon/hwmon0/power1_input")
    keys = ["hwmon:CPU power", "hwmon:IO power"]
    opened = threading.Timer(0.05, lambda: path.write_text("nonsense\n"))
    opened.start()
    broken, good = watch(sysroot, keys, 0.4)
    opened.join()
    assert broken.failed_reads > 0
    assert good.failed_reads == 0
    assert good.readings > 0


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that makes the recorder find these channels."""
    return lambda *channels: monkeypatch.setattr(
        recorder_module,
        "channels_of",
        lambda _sysroot, keys: tuple(channel for channel in channels if channel.rail.key in keys),
    )


def test_a_polled_rail_is_read_as_fast_as_it_answers_whatever_it_says_of_itself(offer: Callable[..., None]) -> None:
    slow = replace(RAIL, update_period_s=30.0)
    offer(PolledChannel(rail=slow, read=lambda: float(time.monotonic_ns() // (50 * MS))))
    (seen,) = watch(Sysroot(), [slow.key], 0.6)
    assert seen.readings > 20
    assert seen.update_period_s == pytest.approx(0.05, rel=0.5)


def test_a_polled_rail_that_fails_shows_no_cost_and_no_value(offer: Callable[..., None]) -> None:
    def read() -> float:
        raise OSError("gone")

    offer(PolledChannel(rail=RAIL, read=read))
    (seen,) = watch(Sysroot(), [RAIL.key], 0.02)
    assert (seen.readings, seen.read_cost_us, seen.update_period_s) == (0, None, None)
    assert seen.failed_reads > 0
    assert corrected(seen) == RAIL


def test_a_slow_source_does_not_hold_up_another(offer: Callable[..., None]) -> None:
    other = replace(RAIL, source="quick")
    offer(
        PolledChannel(rail=RAIL, read=lambda: time.sleep(0.2) or 1.0),
        PolledChannel(rail=other, read=lambda: 1.0),
    )
    slow, quick = watch(Sysroot(), [RAIL.key, other.key], 0.4)
    assert quick.readings > 3 * slow.readings
    assert slow.read_cost_us is not None
    assert slow.read_cost_us >= 200_000


def test_what_a_trace_shows() -> None:
    seen = describe(trace([1, 1, 1, 2, 2, 3, 3, 4, 4, 4]), failed_reads=3)
    assert seen.update_period_s == pytest.approx(0.002)
    assert seen.longest_unchanged_s == pytest.approx(0.003)
    assert seen.read_period_s == pytest.approx(0.001)
    assert seen.changes_per_s == pytest.approx(3 / 0.009)
    assert (seen.readings, seen.failed_reads, seen.values, seen.read_cost_us) == (10, 3, 4, 2.5)


def test_noise_between_two_steps_is_no_sign_of_life() -> None:
    """The power may lie on the border of two steps now and in the middle of one under load."""
    assert not describe(trace([1, 2] * 50)).lively
    assert describe(trace([1, 2, 3, 4] * 25)).lively


def seen_by(held_reads: int, stated_s: float) -> Rail:
    values = np.repeat(np.arange(20.0), held_reads)
    return corrected(describe(trace(values, rail=replace(RAIL, update_period_s=stated_s))))


def test_a_longer_period_replaces_the_stated_one_and_a_shorter_one_does_not() -> None:
    assert seen_by(100, 0.01).update_period_s == pytest.approx(0.1)
    assert seen_by(100, 0.0).update_period_s == pytest.approx(0.1)
    assert seen_by(100, 0.098).update_period_s == 0.098
    assert seen_by(100, 1.0).update_period_s == 1.0


def test_a_period_that_is_the_reader_s_own_is_not_believed() -> None:
    assert seen_by(1, 0.0).update_period_s == 0.0


def test_the_same_sensor_is_the_same_rail_next_time() -> None:
    base = describe(trace(np.repeat(np.arange(20.0), 100)))
    found = {corrected(replace(base, update_period_s=period)) for period in (0.0996, 0.1, 0.1004)}
    assert len(found) == 1


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=60), st.floats(0, 10))
def test_any_readings_give_an_answer(values: list[float], stated_s: float) -> None:
    seen: Watched = describe(trace(values, rail=replace(RAIL, update_period_s=stated_s)))
    assert 0 <= seen.longest_unchanged_s <= 0.06
    assert seen.values <= seen.readings == len(values)
    rail = corrected(seen)
    assert rail.update_period_s >= stated_s
    assert replace(rail, update_period_s=stated_s) == seen.rail
