"""What a recorder says that its own sampling cost: the share of one core of its two threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

import pytest

from powerlab.domain.power import Rail, RailQuantity
from powerlab.domain.quantity import Provenance
from powerlab.power.base import Channel, FileChannel, PolledChannel
from powerlab.power.sampling import recorder as recorder_module
from powerlab.power.sampling.poller import Poller
from powerlab.power.sampling.recorder import Recorder
from powerlab.sysroot import Sysroot

Tree = Callable[[Mapping[str, object]], Sysroot]
TIMEOUT_S = 20.0
RAIL = Rail(
    source="fake",
    name="rail",
    quantity=RailQuantity.POWER,
    resolution=0.0,
    relative_error=0.0,
    update_period_s=0.0,
    provenance=Provenance.MEASURED,
)


def spin(cpu_ns: int) -> float:
    """Use up processor time of this thread; return a reading."""
    until = time.thread_time_ns() + cpu_ns
    while time.thread_time_ns() < until:
        pass
    return 1.0


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.001)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Recorder]:
    """Return a function that makes a recorder of these channels."""

    def make(sysroot: Sysroot, *channels: Channel, period_s: float = 0.001) -> Recorder:
        monkeypatch.setattr(recorder_module, "channels_of", lambda _sysroot, _keys: channels)
        return Recorder(sysroot, ["fake:rail"], period_s)

    return make


@pytest.fixture
def file_channel() -> FileChannel:
    return FileChannel(rail=RAIL, paths=("/power1_input",), scale=1e-6)


def test_the_share_is_known_when_recording_has_ended(tree: Tree, recorder, file_channel) -> None:
    found = recorder(tree({"/power1_input": "5000000\n"}), file_channel)
    assert found.core_share == 0
    with found:
        wait_until(lambda: found.rounds > 10)
        assert found.core_share == 0
        found.stop()
    assert 0 < found.core_share <= 1


def test_a_recording_that_fails_has_its_share_all_the_same(tree: Tree, recorder, file_channel) -> None:
    found = recorder(tree({"/power1_input": "nothing\n"}), file_channel)
    with found, suppress(Exception):
        wait_until(lambda: found.rounds > 10)
        found.stop()
    assert 0 < found.core_share <= 1


def test_the_python_threads_time_is_counted(tree: Tree, recorder) -> None:
    """A source that computes for half of its life uses a good part of a core, whatever else the machine does."""
    spent_ns = 0

    def read() -> float:
        nonlocal spent_ns
        spent_ns += 5_000_000
        return spin(5_000_000)

    found = recorder(tree({}), PolledChannel(rail=RAIL, read=read))
    begin_ns = time.monotonic_ns()
    with found:
        wait_until(lambda: spent_ns >= 50_000_000)
        found.stop()
    elapsed_ns = time.monotonic_ns() - begin_ns
    assert found.core_share >= 0.99 * spent_ns / elapsed_ns


def test_the_pollers_time_is_of_its_last_recording_and_of_its_own_thread() -> None:
    poller = Poller([PolledChannel(rail=RAIL, read=lambda: spin(20_000_000))], 3600.0)
    assert poller.cpu_ns == 0
    poller.start()
    wait_until(lambda: bool(poller.samples[0].value))
    spin(50_000_000)
    poller.stop()
    first_ns = poller.cpu_ns
    assert 20_000_000 <= first_ns < 45_000_000
    poller.start()
    assert poller.cpu_ns == 0
    poller.stop()
    assert poller.cpu_ns < first_ns + 10_000_000


def test_a_source_that_breaks_is_counted_too() -> None:
    def broken() -> float:
        spin(10_000_000)
        raise TypeError("the library changed its answer")

    poller = Poller([PolledChannel(rail=RAIL, read=broken)], 0.001)
    poller.start()
    with pytest.raises(TypeError):
        poller.stop()
    assert poller.cpu_ns >= 10_000_000


def test_the_share_of_a_recording_whose_source_broke_is_known(tree: Tree, recorder) -> None:
    broken = threading.Event()

    def read() -> float:
        spin(10_000_000)
        broken.set()
        raise TypeError("the library changed its answer")

    found = recorder(tree({}), PolledChannel(rail=RAIL, read=read))
    found.start()
    assert broken.wait(TIMEOUT_S)
    with pytest.raises(TypeError):
        found.stop()
    assert found.core_share > 0
