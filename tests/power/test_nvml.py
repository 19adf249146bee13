"""NVML through a module that stands in for pynvml."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from powerlab.domain.power import Availability, RailQuantity
from powerlab.power.base import PolledChannel
from powerlab.power.nvml import Nvml
from powerlab.sysroot import Sysroot


class NVMLError(Exception):
    """As pynvml's."""


class FakeNvml:
    """Two figures can be switched off; the field value fails in its own way."""

    NVMLError = NVMLError

    def __init__(self, *, count: int = 1, energy: bool = True, instant: bool = True, average_mw: int = 0) -> None:
        self.count, self.energy, self.instant, self.average_mw = count, energy, instant, average_mw
        self.started = 0
        self.energy_mj = 5_000_000

    def nvmlInit(self) -> None:  # noqa: N802
        self.started += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.started -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle: int) -> bytes:  # noqa: N802
        return b"Test GPU"

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:  # noqa: N802
        if not self.energy:
            raise NVMLError("Not Supported")
        self.energy_mj += 1000
        return self.energy_mj

    def nvmlDeviceGetFieldValues(self, handle: int, fields: list[int]) -> list[SimpleNamespace]:  # noqa: N802
        assert fields == [186]
        return [SimpleNamespace(nvmlReturn=0 if self.instant else 3, value=SimpleNamespace(uiVal=123_000))]

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:  # noqa: N802
        if not self.average_mw:
            raise NVMLError("Not Supported")
        return self.average_mw


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:
    return lambda module: monkeypatch.setitem(sys.modules, "pynvml", module)


def only_channel() -> PolledChannel:
    (channel,) = Nvml().channels(Sysroot())
    assert isinstance(channel, PolledChannel)
    return channel


def test_energy_counter_is_preferred(install: Callable[[object], None]) -> None:
    fake = FakeNvml()
    install(fake)
    probe = Nvml().probe(Sysroot())
    assert probe.availability is Availability.AVAILABLE
    assert probe.detail == "Test GPU"
    assert [rail.quantity for rail in probe.rails] == [RailQuantity.ENERGY]
    assert fake.started == 0
    channel = only_channel()
    assert channel.read() + 1.0 == pytest.approx(channel.read())


@pytest.mark.parametrize(
    ("fake", "watts", "period_s"),
    [(FakeNvml(energy=False), 123.0, 0.1), (FakeNvml(energy=False, instant=False, average_mw=98_000), 98.0, 1.0)],
)
def test_power_where_there_is_no_counter(
    install: Callable[[object], None], fake: FakeNvml, watts: float, period_s: float
) -> None:
    install(fake)
    channel = only_channel()
    assert channel.rail.quantity is RailQuantity.POWER
    assert channel.read() == pytest.approx(watts)
    assert channel.rail.update_period_s == period_s


def test_a_processor_that_answers_nothing_is_broken_and_not_0_watts(install: Callable[[object], None]) -> None:
    install(FakeNvml(energy=False, instant=False))
    probe = Nvml().probe(Sysroot())
    assert probe.availability is Availability.BROKEN
    assert probe.remedy
    assert not Nvml().channels(Sysroot())


def test_a_read_that_fails_later_is_an_os_error(install: Callable[[object], None]) -> None:
    fake = FakeNvml()
    install(fake)
    channel = only_channel()
    fake.energy = False
    with pytest.raises(OSError, match="NVML"):
        channel.read()


def test_several_processors_have_rails_of_their_own(install: Callable[[object], None]) -> None:
    install(FakeNvml(count=3))
    assert [rail.name for rail in Nvml().probe(Sysroot()).rails] == ["GPU0", "GPU1", "GPU2"]


def test_no_processor(install: Callable[[object], None]) -> None:
    install(FakeNvml(count=0))
    assert Nvml().probe(Sysroot()).availability is Availability.ABSENT


def test_no_driver(install: Callable[[object], None], monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeNvml()

    def fail() -> None:
        raise NVMLError("NVML Shared Library Not Found")

    monkeypatch.setattr(fake, "nvmlInit", fail)
    install(fake)
    probe = Nvml().probe(Sysroot())
    assert probe.availability is Availability.ABSENT
    assert "Not Found" in probe.detail
    assert not Nvml().channels(Sysroot())


def test_no_package(install: Callable[[object], None]) -> None:
    install(None)
    probe = Nvml().probe(Sysroot())
    assert probe.availability is Availability.ABSENT
    assert "pip install" in probe.remedy
    assert not Nvml().channels(Sysroot())


def test_another_system_root_is_not_this_host(
    install: Callable[[object], None], machine: Callable[[str], Sysroot]
) -> None:
    fake = FakeNvml()
    install(fake)
    sysroot = machine("nothing")
    assert Nvml().probe(sysroot).availability is Availability.ABSENT
    assert not Nvml().channels(sysroot)
    assert fake.started == 0
