"""The source ``nvml``: which figures of a card become rails, and what it says where there are none."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from nvidia_cards import CARD, SILENT, put, without, write_cards
from powerlab.domain.power import Availability, Rail, RailQuantity
from powerlab.domain.quantity import Provenance
from powerlab.nvml_library import Library, NvmlError
from powerlab.power.base import PolledChannel
from powerlab.power.sampling.poller import Poller
from powerlab.power.sources.nvml import Nvml
from powerlab.sysroot import Sysroot

POWERS = ("power_instant_mw", "power_average_mw")


def rails_of(sysroot: Sysroot) -> dict[str, Rail]:
    return {rail.name: rail for rail in Nvml().probe(sysroot).rails}


def channel_of(sysroot: Sysroot, name: str = "GPU0") -> PolledChannel:
    (channel,) = (channel for channel in Nvml().channels(sysroot) if channel.rail.name == name)
    assert isinstance(channel, PolledChannel)
    return channel


def test_a_card_that_knows_everything_has_three_rails(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path)
    probe = Nvml().probe(sysroot)
    assert probe.availability is Availability.AVAILABLE
    assert probe.detail == "Test Card"
    assert {rail.name: rail.quantity for rail in probe.rails} == {
        "GPU0": RailQuantity.ENERGY,
        "GPU0 instant": RailQuantity.POWER,
        "GPU0 average": RailQuantity.POWER,
    }
    assert channel_of(sysroot).read() == 5000.0
    assert channel_of(sysroot, "GPU0 instant").read() == 123.0
    assert channel_of(sysroot, "GPU0 average").read() == 98.0


def test_rails_state_their_errors_and_where_they_come_from(tmp_path: Path) -> None:
    rails = rails_of(write_cards(tmp_path))
    assert {rail.provenance for rail in rails.values()} == {Provenance.SIMULATED}
    assert {(rail.relative_error, rail.resolution) for rail in rails.values()} == {(0.05, 0.001)}
    assert [rails[name].update_period_s for name in ("GPU0", "GPU0 instant", "GPU0 average")] == [0.1, 0.1, 1.0]


@pytest.mark.parametrize(
    ("card", "expected"),
    [
        (without("energy_mj"), {"GPU0": (123.0, 0.1), "GPU0 average": (98.0, 1.0)}),
        (without("energy_mj", "power_instant_mw"), {"GPU0": (98.0, 1.0)}),
        (without(*POWERS), {"GPU0": (5000.0, 0.1)}),
        (without("power_average_mw"), {"GPU0": (5000.0, 0.1), "GPU0 instant": (123.0, 0.1)}),
        ({**CARD, "power_instant_mw": 0}, {"GPU0": (5000.0, 0.1), "GPU0 average": (98.0, 1.0)}),
        ({**CARD, "energy_mj": 0}, {"GPU0": (123.0, 0.1), "GPU0 average": (98.0, 1.0)}),
    ],
)
def test_the_best_figure_there_is_comes_first(
    tmp_path: Path, card: Mapping[str, object], expected: Mapping[str, tuple[float, float]]
) -> None:
    """0 is what some drivers say where they mean "not supported"."""
    channels = Nvml().channels(write_cards(tmp_path, [card]))
    found = {c.rail.name: (c.read(), c.rail.update_period_s) for c in channels if isinstance(c, PolledChannel)}
    assert found == expected
    assert next(iter(found)) == "GPU0"


def test_a_card_that_answers_nothing_is_broken_and_not_0_watts(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path, [SILENT])
    probe = Nvml().probe(sysroot)
    assert probe.availability is Availability.BROKEN
    assert "Tegra Orin" in probe.detail
    assert "ina3221" in probe.remedy
    assert not probe.rails
    assert not Nvml().channels(sysroot)


def test_a_silent_card_beside_one_that_answers(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path, [CARD, SILENT, CARD])
    probe = Nvml().probe(sysroot)
    assert probe.availability is Availability.AVAILABLE
    assert probe.detail == "2 x Test Card, NVIDIA Tegra Orin (nvgpu); GPU1 gives neither energy nor power"
    assert probe.remedy
    assert [rail.name for rail in probe.rails if " " not in rail.name] == ["GPU0", "GPU2"]


@pytest.mark.parametrize(
    ("facts", "share"),
    [
        ({"name": "NVIDIA A100-SXM4-40GB"}, 0.25),
        ({"name": "NVIDIA A10"}, 1.0),
        ({"name": "a card of tomorrow", "compute_capability": 90}, 0.25),
        ({"name": "NVIDIA A100-SXM4-40GB", "compute_capability": 86}, 1.0),
        ({"name": "NVIDIA H100 PCIe", "compute_capability": 100}, 1.0),
    ],
)
def test_cards_that_look_part_of_the_time_say_so(tmp_path: Path, facts: Mapping[str, object], share: float) -> None:
    probe = Nvml().probe(write_cards(tmp_path, [{**CARD, **facts}]))
    assert {rail.seen_share for rail in probe.rails} == {share}
    assert ("2312.02741" in probe.detail) is (share < 1)


@pytest.mark.parametrize(
    ("capability", "period_s"), [((7, 5), 0.1), ((8, 0), 0.1), ((8, 6), 1.0), ((9, 0), 1.0), (None, 1.0)]
)
def test_the_only_power_of_an_old_driver_is_read_as_its_generation_means_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capability: tuple[int, int] | None, period_s: float
) -> None:
    """Before field values there was one power: that of now, or from Ampere on the mean of a second; GA100 is older."""

    def ask(self: Library, function: str, *arguments: object) -> object:
        answers = {
            "nvmlInit": None,
            "nvmlShutdown": None,
            "nvmlDeviceGetCount": 1,
            "nvmlDeviceGetHandleByIndex": "the card",
            "nvmlDeviceGetName": "an old card",
            "nvmlDeviceGetPowerUsage": 120_000,
            **({} if capability is None else {"nvmlDeviceGetCudaComputeCapability": capability}),
        }
        if function not in answers:
            raise NvmlError("Not Supported", 3)
        return answers[function]

    monkeypatch.setattr(Library, "ask", ask)
    (channel,) = Nvml().channels(write_cards(tmp_path))
    assert isinstance(channel, PolledChannel)
    assert (channel.read(), channel.rail.update_period_s) == (120.0, period_s)


def test_no_card(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path, [])
    assert Nvml().probe(sysroot).availability is Availability.ABSENT
    assert not Nvml().channels(sysroot)


@pytest.mark.parametrize(("code", "availability"), [(4, Availability.DENIED), (18, Availability.BROKEN)])
def test_a_driver_in_trouble(tmp_path: Path, code: int, availability: Availability) -> None:
    sysroot = write_cards(tmp_path, init_error=code)
    probe = Nvml().probe(sysroot)
    assert probe.availability is availability
    assert probe.remedy
    assert not Nvml().channels(sysroot)


def test_another_system_root_is_not_this_host(machine: Callable[[str], Sysroot]) -> None:
    sysroot = machine("nothing")
    assert Nvml().probe(sysroot).availability is Availability.ABSENT
    assert not Nvml().channels(sysroot)


def test_a_read_that_fails_later_is_an_os_error(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path)
    channel = channel_of(sysroot)
    put(sysroot, "energy_mj", "lost")
    with pytest.raises(OSError, match="NVML"):
        channel.read()
    put(sysroot, "energy_mj", 6_000_000)
    assert channel.read() == 6000.0


def test_all_rails_share_one_session(tmp_path: Path) -> None:
    channels = Nvml().channels(write_cards(tmp_path, [CARD, CARD]))
    assert len({channel.session for channel in channels if isinstance(channel, PolledChannel)}) == 1


def test_the_poller_reads_every_rail(tmp_path: Path) -> None:
    channels = [c for c in Nvml().channels(write_cards(tmp_path, [CARD, CARD])) if isinstance(c, PolledChannel)]
    poller = Poller(channels, 0.01)
    poller.start()
    deadline = time.monotonic() + 20
    while not all(samples.value for samples in poller.samples) and time.monotonic() < deadline:
        time.sleep(0.01)
    poller.stop()
    assert [samples.value[0] for samples in poller.samples] == [5000.0, 123.0, 98.0] * 2
    assert [samples.failed_reads for samples in poller.samples] == [0] * 6


class HostError(Exception):
    value = 3


class HostNvml:
    """As the package is on a host with an older driver: names are bytes, and there are no field values for power."""

    NVMLError = HostError

    def __init__(self, energy: bool) -> None:
        self.energy, self.started = energy, 0

    def nvmlInit(self) -> None:  # noqa: N802
        self.started += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.started -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle: int) -> bytes:  # noqa: N802
        return b"Tesla P100"

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:  # noqa: N802
        if not self.energy:
            raise HostError("Not Supported")
        return 7_000

    def nvmlDeviceGetFieldValues(self, handle: int, fields: list[int]) -> list[SimpleNamespace]:  # noqa: N802
        return [SimpleNamespace(nvmlReturn=3, value=SimpleNamespace(uiVal=0)) for _ in fields]

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:  # noqa: N802
        return 61_000


@pytest.mark.parametrize("energy", [True, False])
def test_the_hosts_own_library_with_an_older_driver(monkeypatch: pytest.MonkeyPatch, energy: bool) -> None:
    """There the one power that is given may be an average or not, so it gets a name of its own."""
    host = HostNvml(energy)
    monkeypatch.setitem(sys.modules, "pynvml", host)
    probe = Nvml().probe(Sysroot())
    assert probe.detail == "Tesla P100"
    assert [rail.name for rail in probe.rails] == (["GPU0", "GPU0 usage"] if energy else ["GPU0"])
    assert {rail.provenance for rail in probe.rails} == {Provenance.MEASURED}
    assert channel_of(Sysroot()).read() == (7.0 if energy else 61.0)
    assert host.started == 0, "NVML is let go of"
