"""Each file-based source on pictures of real machines."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping

import pytest

from powerlab.domain.power import Availability, RailQuantity, SourceProbe
from powerlab.domain.quantity import Provenance
from powerlab.power.base import FileChannel
from powerlab.power.sources.hwmon.source import Hwmon
from powerlab.power.sources.ina3221 import Ina3221
from powerlab.power.sources.rapl import Rapl
from powerlab.sysroot import SIMULATION_MARKER, Sysroot

Machine = Callable[[str], Sysroot]
Tree = Callable[[Mapping[str, object]], Sysroot]


def names(probe: SourceProbe) -> list[str]:
    return [rail.name for rail in probe.rails]


def watts(sysroot: Sysroot, channel: FileChannel) -> float:
    value = channel.scale
    for path in channel.paths:
        value *= int(sysroot.read(path))
    return value


@pytest.mark.parametrize("name", ["xavier-jp4", "xavier-jp5"])
def test_xavier_has_six_rails_in_either_layout(machine: Machine, name: str) -> None:
    sysroot = machine(name)
    probe = Ina3221().probe(sysroot)
    assert probe.availability is Availability.AVAILABLE
    assert names(probe) == ["GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"]
    values = [watts(sysroot, channel) for channel in Ina3221().channels(sysroot)]
    assert values == pytest.approx([1.154, 0.384, 2.502, 0.0, 0.192, 2.694], abs=0.002)
    assert {rail.provenance for rail in probe.rails} == {Provenance.MEASURED}
    assert {rail.quantity for rail in probe.rails} == {RailQuantity.POWER}


def test_steps_come_from_shunt_and_voltage(machine: Machine) -> None:
    steps = [rail.resolution for rail in Ina3221().probe(machine("orin")).rails]
    assert steps == pytest.approx([0.02 * 12.008, 0.02 * 12.008, 0.02 * 4.968, 0.02 * 4.968])


@pytest.mark.parametrize(("compatible", "step_w"), [(True, 0.01), (False, 0.02)])
def test_jetpack_4_without_shunts_has_the_board_s_or_a_bound(machine: Machine, compatible: bool, step_w: float) -> None:
    """Neither may lead to a step of 0, which would take quantisation out of the error budget."""
    sysroot = machine("xavier-jp4")
    if not compatible:
        sysroot.path("/proc/device-tree/compatible").unlink()
    assert [rail.resolution for rail in Ina3221().probe(sysroot).rails] == [pytest.approx(step_w * 19.248)] * 6


def test_jetpack_4_averages_as_long_as_its_device_tree_says(machine: Machine) -> None:
    """0x7727: three channels, 64 averages, 1.1 ms for bus and for shunt: 0.42 s, and never "fresh at every read"."""
    sysroot = machine("xavier-jp4")
    assert {rail.update_period_s for rail in Ina3221().probe(sysroot).rails} == {0.0}
    cell = sysroot.path("/sys/bus/i2c/drivers/ina3221x/1-0040/of_node/ti,continuous-config")
    cell.parent.mkdir(parents=True)
    cell.write_bytes((0x7727).to_bytes(4, "big"))
    periods = {rail.name: rail.update_period_s for rail in Ina3221().probe(sysroot).rails}
    assert periods["GPU"] == pytest.approx(0.4224)
    assert periods["CV"] == 0.0


def test_jetpack_4_finds_the_shunt_in_the_device_tree(machine: Machine) -> None:
    sysroot = machine("xavier-jp4")
    cell = sysroot.path("/sys/bus/i2c/drivers/ina3221x/1-0040/of_node/channel@1/ti,shunt-resistor-mohm")
    cell.parent.mkdir(parents=True)
    cell.write_bytes((5).to_bytes(4, "big"))
    rails = {rail.name: rail for rail in Ina3221().probe(sysroot).rails}
    assert rails["CPU"].resolution == pytest.approx(0.008 * 19.248)


def test_orin_leaves_out_what_is_unconnected_or_fails(machine: Machine) -> None:
    probe = Ina3221().probe(machine("orin"))
    assert names(probe) == ["VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0", "VDDQ_VDD2_1V8AO"]
    assert "SPARE" in probe.detail


def test_a_disabled_channel_is_no_rail(machine: Machine) -> None:
    sysroot = machine("orin-nano")
    sysroot.path("/sys/bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon1/in2_enable").write_text("0\n")
    assert names(Ina3221().probe(sysroot)) == ["VDD_IN", "VDD_SOC"]


def test_update_interval_is_carried(machine: Machine) -> None:
    sysroot = machine("orin-nano")
    sysroot.path("/sys/bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon1/update_interval").write_text("33\n")
    assert {rail.update_period_s for rail in Ina3221().probe(sysroot).rails} == {0.033}


def test_two_rails_of_one_name_stay_apart(machine: Machine) -> None:
    sysroot = machine("xavier-jp5")
    sysroot.path("/sys/bus/i2c/drivers/ina3221/1-0041/hwmon/hwmon4/in1_label").write_text("GPU\n")
    assert names(Ina3221().probe(sysroot))[3] == "GPU@1-0041"


def test_rails_only_root_may_read_are_denied_and_not_absent(machine: Machine, deny: Callable[[str], None]) -> None:
    deny("")
    probe = Ina3221().probe(machine("xavier-jp4"))
    assert probe.availability is Availability.DENIED
    assert "sudo" in probe.remedy
    assert not probe.rails


def test_simulated_board_gives_simulated_rails(machine: Machine) -> None:
    sysroot = machine("xavier-jp4")
    (sysroot.base / SIMULATION_MARKER).write_text("{}")
    assert {rail.provenance for rail in Ina3221().probe(sysroot).rails} == {Provenance.SIMULATED}


def test_xeon_drops_the_doubles_of_mmio(machine: Machine) -> None:
    sysroot = machine("xeon")
    probe = Rapl().probe(sysroot)
    assert names(probe) == ["package-0", "package-0/core", "package-0/dram", "package-1", "package-1/dram", "psys"]
    channels = Rapl().channels(sysroot)
    assert not any("mmio" in path for channel in channels for path in channel.paths)  # type: ignore[union-attr]
    assert {channel.wraps_at for channel in channels} == {2**32 * 61035 // 1000}  # type: ignore[union-attr]
    assert probe.rails[0].resolution == pytest.approx(61.035e-6, rel=1e-4)


def test_mmio_alone_is_used(tree: Tree, rapl_zone: Callable[..., Mapping[str, object]]) -> None:
    assert names(Rapl().probe(tree(rapl_zone("intel-rapl-mmio:0", "package-0")))) == ["package-0"]


def test_rapl_denied_says_how_to_grant_it(machine: Machine, deny: Callable[[str], None]) -> None:
    deny("/energy_uj")
    probe = Rapl().probe(machine("xeon"))
    assert probe.availability is Availability.DENIED
    assert "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj" in probe.remedy
    assert "udev" in probe.remedy
    assert not probe.rails


def test_partly_denied_keeps_what_works_and_says_so(machine: Machine, deny: Callable[[str], None]) -> None:
    deny("intel-rapl:1/energy_uj")
    probe = Rapl().probe(machine("xeon"))
    assert probe.availability is Availability.AVAILABLE
    assert "package-1" in probe.detail
    assert probe.remedy
    assert "package-1" not in names(probe)


@pytest.mark.parametrize(
    ("cpuinfo", "word", "has_remedy"),
    [
        ("", "only Intel and AMD", False),
        ("vendor_id\t: GenuineIntel\nflags\t\t: fpu hypervisor sse\n", "virtual machine", False),
        ("vendor_id\t: AuthenticAMD\nflags\t\t: fpu sse\n", "driver", True),
    ],
)
def test_rapl_absent_says_why(tree: Tree, cpuinfo: str, word: str, has_remedy: bool) -> None:
    probe = Rapl().probe(tree({"/proc/cpuinfo": cpuinfo}))
    assert probe.availability is Availability.ABSENT
    assert word in probe.detail
    assert bool(probe.remedy) is has_remedy


def test_a_zone_that_does_not_answer_is_broken(tree: Tree, rapl_zone: Callable[..., Mapping[str, object]]) -> None:
    probe = Rapl().probe(tree(rapl_zone("intel-rapl:0", "package-0", energy_uj="garbage")))
    assert probe.availability is Availability.BROKEN
    assert "package-0" in probe.detail


def test_hwmon_leaves_ina3221_to_its_own_source(machine: Machine) -> None:
    assert Hwmon().probe(machine("xavier-jp5")).availability is Availability.ABSENT


def test_altra_counts_energy_in_natural_order(machine: Machine) -> None:
    probe = Hwmon().probe(machine("altra"))
    assert names(probe) == [f"Core Energy {n:03d}" for n in range(1, 13)]
    assert {rail.quantity for rail in probe.rails} == {RailQuantity.ENERGY}


def test_xgene(machine: Machine) -> None:
    sysroot = machine("xgene")
    assert names(Hwmon().probe(sysroot)) == ["CPU power", "IO power"]
    assert [watts(sysroot, c) for c in Hwmon().channels(sysroot)] == pytest.approx([22.04, 9.0])  # type: ignore[arg-type]


def test_power_meter_states_accuracy_and_interval(machine: Machine) -> None:
    (rail,) = Hwmon().probe(machine("power-meter")).rails
    assert (rail.name, rail.relative_error, rail.update_period_s) == ("power_meter", 0.05, 1.0)


def test_grace_names_its_meters_and_drops_the_unknown_one(machine: Machine) -> None:
    probe = Hwmon().probe(machine("grace"))
    assert names(probe) == ["Module Power Socket 0", "Grace Power Socket 0", "CPU Power Socket 0"]
    assert "SysIO Power Socket 0" in probe.detail


def test_two_equal_chips_are_told_apart_by_device_and_not_by_number(
    tree: Tree, hwmon_chip: Callable[..., Mapping[str, object]]
) -> None:
    meter = {"power1_average": 1000000}
    sysroot = tree(
        {
            **hwmon_chip(1, "power_meter", meter),
            **hwmon_chip(9, "power_meter", meter),
            "/sys/devices/ACPI000D:00/hid": "x",
            "/sys/devices/ACPI000D:01/hid": "x",
        }
    )
    for number, device in ((1, "ACPI000D:01"), (9, "ACPI000D:00")):
        sysroot.path(f"/sys/class/hwmon/hwmon{number}/device").symlink_to(sysroot.path(f"/sys/devices/{device}"))
    assert names(Hwmon().probe(sysroot)) == ["power_meter @ACPI000D:00", "power_meter @ACPI000D:01"]


@pytest.mark.parametrize("source", [Ina3221(), Rapl(), Hwmon()], ids=lambda source: source.name)
def test_nothing_there_is_a_state_and_no_error(machine: Machine, source: Ina3221 | Rapl | Hwmon) -> None:
    sysroot = machine("nothing")
    probe = source.probe(sysroot)
    assert probe.availability is Availability.ABSENT
    assert probe.detail
    assert list(source.channels(sysroot)) == []


def test_enodata_is_broken_and_says_so(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """X-Gene answers ENODATA where its reading is invalid."""
    sysroot = machine("xgene")
    honest = Sysroot.read

    def read(self: Sysroot, path: str) -> str:
        if path.endswith("_input"):
            raise OSError(errno.ENODATA, "No data available", path)
        return honest(self, path)

    monkeypatch.setattr(Sysroot, "read", read)
    probe = Hwmon().probe(sysroot)
    assert probe.availability is Availability.BROKEN
    assert "No data available" in probe.detail
    assert probe.remedy


def test_a_counter_without_a_range_has_no_step_and_no_wrap(
    tree: Tree, rapl_zone: Callable[..., Mapping[str, object]]
) -> None:
    sysroot = tree({**rapl_zone("intel-rapl:0", "package-0"), "/sys/class/powercap/intel-rapl:1/name": "package-1"})
    sysroot.path("/sys/class/powercap/intel-rapl:0/max_energy_range_uj").write_text("-1\n")
    (channel,) = Rapl().channels(sysroot)
    assert isinstance(channel, FileChannel)
    assert (channel.wraps_at, channel.rail.resolution) == (None, 0.0)
    assert "package-1" in Rapl().probe(sysroot).detail


def test_one_rail_is_one_rail(machine: Machine) -> None:
    assert Hwmon().probe(machine("power-meter")).detail == "1 rail can be read"


@pytest.mark.parametrize("name", ["xavier-jp4", "orin", "xeon", "altra", "xgene", "grace", "psu"])
def test_channels_are_those_the_probe_lists(machine: Machine, name: str) -> None:
    sysroot = machine(name)
    for source in (Ina3221(), Rapl(), Hwmon()):
        probe = source.probe(sysroot)
        assert tuple(channel.rail for channel in source.channels(sysroot)) == probe.rails
        assert len({rail.key for rail in probe.rails}) == len(probe.rails)
        assert bool(probe.rails) is (probe.availability is Availability.AVAILABLE)
