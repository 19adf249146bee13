"""The recorder: what it makes of samples, gaps, wraps and failures."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Rail, RailQuantity
from powerlab.domain.quantity import Provenance
from powerlab.power.base import Channel, FileChannel, PolledChannel
from powerlab.power.sampling import recorder as recorder_module
from powerlab.power.sampling.recorder import Recorder
from powerlab.sysroot import Sysroot

Machine = Callable[[str], Sysroot]
Tree = Callable[[Mapping[str, object]], Sysroot]
PERIOD_S = 0.001
RAIL = Rail(
    source="fake",
    name="rail",
    quantity=RailQuantity.POWER,
    resolution=0.0,
    relative_error=0.0,
    update_period_s=0.0,
    provenance=Provenance.MEASURED,
)
COUNTER = replace(RAIL, name="counter", quantity=RailQuantity.ENERGY)


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that makes the recorder find these channels."""
    return lambda *channels: monkeypatch.setattr(recorder_module, "channels_of", lambda _sysroot, _keys: channels)


class Script:
    """A polled sensor that plays values, the last one for ever; an exception is raised."""

    def __init__(self, *values: float | Exception) -> None:
        self.values = list(values)
        self.reads = 0

    def __call__(self) -> float:
        value = self.values[min(self.reads, len(self.values) - 1)]
        self.reads += 1
        if isinstance(value, Exception):
            raise value
        return value

    def wait(self) -> None:
        deadline = time.monotonic() + 20
        while self.reads <= len(self.values):
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.001)


def wait_rounds(recorder: Recorder, more: int = 3) -> None:
    """Wait until every file was read ``more`` times from now on."""
    wanted = recorder.rounds + more
    deadline = time.monotonic() + 20
    while recorder.rounds < wanted:
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.0002)


def test_products_and_scales_become_watts(machine: Machine) -> None:
    keys = ["ina3221:VDD_SOC", "ina3221:VDD_IN"]
    with Recorder(machine("orin-nano"), keys, PERIOD_S) as recorder:
        wait_rounds(recorder)
        traces = recorder.stop()
    assert [trace.rail.key for trace in traces] == keys
    assert traces[0].value == pytest.approx(5.008 * 0.28)
    assert traces[1].value == pytest.approx(5.008 * 0.95)
    for trace in traces:
        assert trace.time_ns.dtype == np.int64
        assert trace.value.dtype == np.float64
        assert (np.diff(trace.time_ns) > 0).all()
        assert trace.read_cost_ns > 0
    assert set(recorder.failed_reads.values()) == {0}


def test_a_wrapping_counter_never_decreases(machine: Machine) -> None:
    sysroot = machine("xeon")
    path = sysroot.path("/sys/class/powercap/intel-rapl:0/energy_uj")
    wraps_at = 262143328850
    with Recorder(sysroot, ["rapl:package-0"], 0.0005) as recorder:
        start, total = wraps_at - 1_000_000, 3_000_000
        with path.open("r+b", buffering=0) as handle:
            for counted in range(0, total + 1, 100_000):
                os.pwrite(handle.fileno(), f"{(start + counted) % wraps_at:020d}\n".encode(), 0)
                wait_rounds(recorder, 2)
        wait_rounds(recorder)
        (trace,) = recorder.stop()
    assert (np.diff(trace.value) >= 0).all()
    assert trace.value[-1] == pytest.approx((start + total) * 1e-6)
    assert len(np.unique(trace.value)) >= 30


def test_the_driver_s_word_for_unknown_is_a_gap(machine: Machine) -> None:
    sysroot = machine("power-meter")
    path = sysroot.path("/sys/class/hwmon/hwmon5/power1_average")
    with Recorder(sysroot, ["hwmon:power_meter"], PERIOD_S) as recorder:
        wait_rounds(recorder)
        path.write_text("4294967295000\n")
        wait_rounds(recorder)
        (trace,) = recorder.stop()
    assert set(trace.value) == {143.0}
    assert recorder.failed_reads["hwmon:power_meter"] >= 1


def test_a_rail_without_a_single_sample_is_an_error_and_never_zeros(machine: Machine) -> None:
    sysroot = machine("xgene")
    with Recorder(sysroot, ["hwmon:CPU power", "hwmon:IO power"], PERIOD_S) as recorder:
        pass
    sysroot.path("/sys/class/hwmon/hwmon0/power2_input").write_text("")
    recorder.start()
    wait_rounds(recorder)
    with pytest.raises(PowerlabError, match=r"hwmon:IO power"):
        recorder.stop()


def test_failing_polled_reads_are_gaps(offer: Callable[..., None]) -> None:
    script = Script(1.0, OSError("busy"), 2.0, float("nan"), 3.0)
    offer(PolledChannel(rail=RAIL, read=script))
    with Recorder(Sysroot(), ["fake:rail"], PERIOD_S) as recorder:
        script.wait()
        (trace,) = recorder.stop()
    assert trace.value[:3].tolist() == [1.0, 2.0, 3.0]
    assert recorder.failed_reads == {"fake:rail": 2}


def test_a_polled_counter_that_steps_back_is_dropped_there(offer: Callable[..., None]) -> None:
    script = Script(5.0, float("nan"), 6.0, 4.0, 7.0)
    offer(PolledChannel(rail=COUNTER, read=script))
    with Recorder(Sysroot(), ["fake:counter"], PERIOD_S) as recorder:
        script.wait()
        (trace,) = recorder.stop()
    assert trace.value[:3].tolist() == [5.0, 6.0, 7.0]
    assert recorder.failed_reads == {"fake:counter": 2}


def test_a_fault_in_a_source_is_not_swallowed(offer: Callable[..., None]) -> None:
    script = Script(1.0, ZeroDivisionError("fault"))
    offer(PolledChannel(rail=RAIL, read=script))
    recorder = Recorder(Sysroot(), ["fake:rail"], PERIOD_S)
    recorder.start()
    deadline = time.monotonic() + 20
    while script.reads < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    with pytest.raises(ZeroDivisionError):
        recorder.stop()


def test_a_slow_rail_is_not_read_more_often_than_it_changes(offer: Callable[..., None]) -> None:
    slow, quick = Script(1.0), Script(*map(float, range(20)))
    offer(
        PolledChannel(rail=replace(RAIL, update_period_s=3600.0), read=slow),
        PolledChannel(rail=replace(RAIL, name="quick"), read=quick),
    )
    with Recorder(Sysroot(), ["fake:rail", "fake:quick"], PERIOD_S) as recorder:
        quick.wait()
        traces = recorder.stop()
    assert slow.reads == 1
    assert [len(trace.value) > 19 for trace in traces] == [False, True]


def test_files_and_polled_rails_keep_the_order_asked_for(offer: Callable[..., None], tree: Tree) -> None:
    sysroot = tree({"/a": 1000, "/b": 2000})
    script = Script(7.0)
    channels: list[Channel] = [
        FileChannel(rail=replace(RAIL, name="b"), paths=("/b",), scale=1e-3),
        PolledChannel(rail=replace(RAIL, name="p"), read=script),
        FileChannel(rail=replace(RAIL, name="a"), paths=("/a",), scale=1e-3),
    ]
    offer(*channels)
    with Recorder(sysroot, [], PERIOD_S) as recorder:
        script.wait()
        wait_rounds(recorder)
        traces = recorder.stop()
        assert recorder.stop() is traces
    assert [(trace.rail.name, trace.value[0]) for trace in traces] == [("b", 2.0), ("p", 7.0), ("a", 1.0)]


@pytest.mark.parametrize("period_s", [0.0, -1.0, float("nan"), float("inf")])
def test_a_period_must_be_above_zero(machine: Machine, period_s: float) -> None:
    with pytest.raises(PowerlabError, match="sample period"):
        Recorder(machine("xgene"), ["hwmon:CPU power"], period_s)


def test_a_file_that_went_away_is_one_sentence(offer: Callable[..., None], tree: Tree) -> None:
    offer(FileChannel(rail=RAIL, paths=("/gone",), scale=1.0))
    with pytest.raises(PowerlabError, match=r"cannot be opened.*doctor"):
        Recorder(tree({}), ["fake:rail"], PERIOD_S)


def test_stopping_before_starting_is_refused(machine: Machine) -> None:
    with pytest.raises(PowerlabError, match="start"):
        Recorder(machine("xgene"), ["hwmon:CPU power"], PERIOD_S).stop()


def test_leaving_by_an_error_ends_sampling(machine: Machine) -> None:
    threads_before = len(os.listdir("/proc/self/task"))
    with pytest.raises(KeyError), Recorder(machine("xgene"), ["hwmon:CPU power"], PERIOD_S):
        raise KeyError
    assert len(os.listdir("/proc/self/task")) <= threads_before
