"""The guard around a worker: it ends that process alone, says why, and a guard that cannot watch lets nothing go on."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace

import pytest

from child_process import ChildProcess
from nvidia_cards import CARD, put, write_cards
from powerlab.domain.errors import PowerlabError
from powerlab.domain.temperature import NO_LIMITS, TemperatureLimits
from powerlab.domain.workload import Workload
from powerlab.measure.heat import guard as module
from powerlab.measure.heat.guard import HeatGuard, TooHotError
from powerlab.measure.worker.messages import Load, Measure
from powerlab.measure.worker.process import Worker
from powerlab.sysroot import Sysroot
from powerlab.throttling.temperatures import Temperatures
from zone_tree import ZoneTree

pytestmark = pytest.mark.usefixtures("fakes")
LIMITS = TemperatureLimits(max_c=80.0)
TIMEOUT_S = 30.0


@dataclass
class Told:
    """Whether the guard has ended what it watches."""

    count: int = 0
    event: threading.Event = field(default_factory=threading.Event)

    def __call__(self) -> None:
        self.count += 1
        self.event.set()

    def wait(self) -> None:
        assert self.event.wait(TIMEOUT_S), "the guard did not end it"


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def tree(tmp_path) -> ZoneTree:
    return ZoneTree(tmp_path, ("CPU-therm", "41500"), ("PMIC-Die", "100000"), ("GPU-therm", "39000"))


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with ChildProcess([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process
        process.kill()


def guarded(
    sysroot: Sysroot, end: Callable[[], None], work: Callable[[], None], look_period_s: float = 0.01
) -> TooHotError:
    """Do some work under a guard that ends it, and return what that says."""
    with pytest.raises(TooHotError) as caught, HeatGuard(sysroot, LIMITS, end, look_period_s=look_period_s):
        work()
    return caught.value


def test_a_cool_device_is_left_alone_although_its_pmic_says_100_degrees(tree, told):
    with HeatGuard(tree.sysroot, LIMITS, told, look_period_s=0.01) as guard:
        pass
    assert guard.words().startswith("watched CPU-therm, GPU-therm: 41.5 °C at most (CPU-therm)")
    assert told.count == 0


@pytest.mark.parametrize("limits", [NO_LIMITS, TemperatureLimits(start_below_c=50.0)])
def test_without_a_limit_nothing_is_read(tree, told, monkeypatch, limits):
    monkeypatch.setattr(module, "Temperatures", None)
    with HeatGuard(tree.sysroot, limits, told) as guard:
        pass
    assert (guard.words(), guard.core_share) == ("", 0.0)


def test_the_worker_and_nothing_else_is_ended_when_its_device_gets_too_hot(tree, sleeper):
    with Worker(frozenset({min(os.sched_getaffinity(0))})) as worker:
        worker.load(
            Load(
                backend_module="numpy_backend",
                workload=Workload(model="hang", batch_size=1),
                threads=1,
                sysroot="/",
                seed=7,
            )
        )

        def work() -> None:
            tree.heat(2, 93.4)
            worker.measure(Measure(duration_s=600.0, min_inferences=10, margin_s=0.0))  # one that heeds no SIGTERM

        error = guarded(tree.sysroot, worker.kill, work)
    assert "GPU-therm reached 93.4 °C, and 80 °C is the most it may have; the run was ended." in str(error)
    assert error.rule == "too-hot"
    assert "SIGKILL" in str(error.__cause__)
    assert sleeper.poll() is None, "another process was ended"


def test_a_device_that_got_too_hot_at_the_very_end_is_told_too(tree, told):
    error = guarded(tree.sysroot, told, partial(tree.heat, 0, 80.1), look_period_s=600.0)
    assert "CPU-therm reached 80.1 °C" in str(error)
    assert told.count == 1


def test_the_peak_is_that_of_the_whole_run(tree, told):
    def work() -> None:
        tree.heat(0, 84.0)
        told.wait()
        tree.heat(2, 91.0)

    assert "GPU-therm reached 91.0 °C" in str(guarded(tree.sysroot, told, work))
    assert told.count == 1, "it is ended once"


def test_what_went_wrong_otherwise_is_not_covered_up(tree, told):
    def work() -> None:
        tree.heat(0, 99.0)
        told.wait()
        raise PowerlabError("no such model.")

    with pytest.raises(PowerlabError, match="no such model"), HeatGuard(tree.sysroot, LIMITS, told, look_period_s=0.01):
        work()


def test_a_card_that_gets_too_hot_counts_like_a_zone(tmp_path, told):
    sysroot = write_cards(tmp_path, [CARD, CARD])

    def work() -> None:
        put(sysroot, "temperature_c", 95, index=1)
        told.wait()

    assert "GPU1 reached 95.0 °C" in str(guarded(sysroot, told, work))


def test_a_guard_that_breaks_ends_the_run_and_says_so(tree, told, monkeypatch):
    def breaks(_: Temperatures) -> None:
        raise RuntimeError("the driver fell off the bus")

    monkeypatch.setattr(Temperatures, "read", breaks)
    error = guarded(tree.sysroot, told, told.wait)
    assert error.rule == "no-temperature"
    assert "RuntimeError: the driver fell off the bus" in str(error)
    assert told.count == 1


def test_zones_that_can_no_longer_be_read_end_the_run(tree, told, monkeypatch):
    seconds = itertools.count()  # a look a second, however fast they come
    clock = SimpleNamespace(monotonic=lambda: float(next(seconds)), thread_time=lambda: 0.0)
    monkeypatch.setattr(module, "time", clock)

    def work() -> None:
        tree.remove(0)
        tree.remove(2)
        told.wait()

    error = guarded(tree.sysroot, told, work)
    assert error.rule == "no-temperature"
    assert "no temperature could be read for 5 s" in str(error)
    assert told.count == 1
