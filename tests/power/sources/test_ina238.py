"""The INA238 family on pictures of real machines, and its errors by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.boards import registry
from powerlab.boards.board import Board, Chip
from powerlab.domain.power import Availability, RailQuantity
from powerlab.power.base import FileChannel
from powerlab.power.sources.hwmon.source import Hwmon
from powerlab.power.sources.ina238.chips import CHIPS, DRIVER_SHUNT_UOHM, power_errors
from powerlab.power.sources.ina238.source import Ina238
from powerlab.sysroot import Sysroot

Tree = Callable[[Mapping[str, object]], Sysroot]
Deny = Callable[[str], None]

THOR = Board(
    name="a-thor",
    title="A module",
    compatible=("maker,thor",),
    chips=(
        Chip(address="2-0044", channels=("VIN",), shunt_uohm=2000),
        Chip(address="2-0040", channels=("GPU", "CPU", "SYS")),
    ),
)


def ina(base: Path, number: int, address: str, files: Mapping[str, object], name: str = "ina238") -> None:
    """Draw a chip as the kernel does: the class links to the chip, the chip to its device."""
    device = base / f"sys/devices/i2c-2/{address}"
    chip = device / f"hwmon/hwmon{number}"
    chip.mkdir(parents=True)
    for key, value in {"name": name, **files}.items():
        path = chip / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    (chip / "device").symlink_to(device)
    classes = base / "sys/class/hwmon"
    classes.mkdir(parents=True, exist_ok=True)
    (classes / f"hwmon{number}").symlink_to(chip)


READINGS = {"in0_input": 5, "in1_input": 19900, "curr1_input": 2500, "power1_input": 49_750_000, "temp1_input": 40000}


@pytest.fixture
def thor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sysroot:
    """A board whose description lists one of its two INA238; the other belongs to a USB-PD controller."""
    monkeypatch.setattr(registry, "BOARDS", {"generic": registry.BOARDS["generic"], THOR.name: THOR})
    ina(tmp_path, 3, "2-0044", READINGS)
    ina(tmp_path, 4, "9-0045", {**READINGS, "power1_input": 60_000_000})
    node = tmp_path / "proc/device-tree"
    node.mkdir(parents=True)
    (node / "compatible").write_text("maker,thor\0")
    return Sysroot(tmp_path)


def test_a_rail_has_the_name_and_the_shunt_of_the_board_s_description(thor: Sysroot) -> None:
    (channel,) = Ina238().channels(thor)
    assert isinstance(channel, FileChannel)
    rail = channel.rail
    assert (rail.key, rail.quantity, rail.provenance) == ("ina238:VIN", RailQuantity.POWER, "measured")
    assert int(thor.read(channel.paths[0])) * channel.scale == pytest.approx(49.75)
    assert rail.resolution == pytest.approx(20e-6 / 2e-3 * 19.9)
    assert rail.offset == pytest.approx(5e-6 / 2e-3 * 19.9)
    assert rail.update_period_s == pytest.approx(0.0505, rel=0.01)


def test_a_chip_outside_the_description_is_no_rail_and_is_told(thor: Sysroot) -> None:
    probe = Ina238().probe(thor)
    assert [rail.name for rail in probe.rails] == ["VIN"]
    assert "ina238 9-0045" in probe.detail
    thor.path("/sys/class/hwmon/hwmon3").unlink()
    alone = Ina238().probe(thor)
    assert alone.availability is Availability.ABSENT
    assert "9-0045" in alone.detail
    assert not alone.rails


def test_without_a_description_labels_name_rails_and_else_addresses(tmp_path: Path) -> None:
    ina(tmp_path, 0, "1-0040", {**READINGS, "label": "VDD_MAIN"})
    ina(tmp_path, 1, "1-0041", {**READINGS, "label": "NC"})
    ina(tmp_path, 2, "1-0042", {**READINGS, "label": "VDD_MAIN"})
    names = [rail.name for rail in Ina238().probe(Sysroot(tmp_path)).rails]
    assert names == ["VDD_MAIN", "ina238@1-0041", "VDD_MAIN@1-0042"]


def test_a_chip_that_adds_up_its_energy_is_read_so(tmp_path: Path) -> None:
    ina(tmp_path, 0, "1-0040", {**READINGS, "energy1_input": 123_000_000}, name="ina228")
    (channel,) = Ina238().channels(Sysroot(tmp_path))
    assert isinstance(channel, FileChannel)
    assert (channel.rail.quantity, channel.rail.offset, channel.wraps_at) == (RailQuantity.ENERGY, 0.0, None)
    assert channel.paths[0].endswith("/energy1_input")
    # 1 µV over the driver's own 10 mΩ at 19.9 V is 2 mW of the 49.75 W that flow.
    assert channel.rail.relative_error == pytest.approx(0.0105 + 1e-6 / 10e-3 * 19.9 / 49.75)


def test_a_counter_that_does_not_answer_leaves_the_power(tmp_path: Path) -> None:
    ina(tmp_path, 0, "1-0040", {**READINGS, "energy1_input": "garbage"}, name="ina228")
    probe = Ina238().probe(Sysroot(tmp_path))
    assert [rail.quantity for rail in probe.rails] == [RailQuantity.POWER]


def test_the_device_tree_states_shunt_and_range(tmp_path: Path) -> None:
    ina(tmp_path, 0, "1-0040", READINGS)
    node = tmp_path / "sys/devices/i2c-2/1-0040/of_node"
    node.mkdir()
    (node / "shunt-resistor").write_bytes((500).to_bytes(4, "big"))
    (node / "ti,shunt-gain").write_bytes((1).to_bytes(4, "big"))
    (rail,) = Ina238().probe(Sysroot(tmp_path)).rails
    assert rail.resolution == pytest.approx(5e-6 / 0.5e-3 * 19.9)


def test_the_attribute_comes_before_the_device_tree(tmp_path: Path) -> None:
    ina(tmp_path, 0, "1-0040", {**READINGS, "shunt_resistor": 1000, "update_interval": 270})
    (rail,) = Ina238().probe(Sysroot(tmp_path)).rails
    assert rail.resolution == pytest.approx(20e-6 / 1e-3 * 19.9)
    assert rail.update_period_s == pytest.approx(0.27)


@pytest.mark.parametrize("name", sorted(CHIPS))
def test_no_other_source_reads_these_chips(tmp_path: Path, name: str) -> None:
    ina(tmp_path, 0, "1-0040", READINGS, name=name)
    assert Hwmon().probe(Sysroot(tmp_path)).availability is Availability.ABSENT
    assert Ina238().probe(Sysroot(tmp_path)).availability is Availability.AVAILABLE


def test_denied_and_broken_are_told_apart(tmp_path: Path, deny: Deny) -> None:
    ina(tmp_path, 0, "1-0040", {**READINGS, "power1_input": ""})
    sysroot = Sysroot(tmp_path)
    assert Ina238().probe(sysroot).availability is Availability.BROKEN
    deny("/power1_input")
    probe = Ina238().probe(sysroot)
    assert probe.availability is Availability.DENIED
    assert "sudo" in probe.remedy


def test_nothing_there_is_a_state(tmp_path: Path) -> None:
    probe = Ina238().probe(Sysroot(tmp_path))
    assert (probe.availability, probe.rails, probe.remedy) == (Availability.ABSENT, (), "")
    assert probe.detail


def test_the_published_range_is_16_bits_of_the_step() -> None:
    """With 20 mΩ a count is 1 mA, as the driver chose it."""
    assert power_errors(CHIPS["ina238"], 20_000, 4, 1000).step_w == pytest.approx(1e-3)
    assert power_errors(CHIPS["ina228"], 20_000, 4, 1000).step_w == pytest.approx(1e-3 / 16)
    assert power_errors(CHIPS["ina780"], 123, 4, 10_000).step_w == pytest.approx(24e-3)


@given(
    st.sampled_from(sorted(CHIPS)),
    st.integers(-(2**31), 2**32),
    st.integers(-10, 2**32),
    st.integers(-(2**31), 10**9),
)
def test_errors_are_finite_and_never_negative(name: str, shunt_uohm: int, gain: int, voltage_mv: int) -> None:
    errors = power_errors(CHIPS[name], shunt_uohm, gain, voltage_mv)
    assert 0 <= errors.step_w < float("inf")
    assert 0 <= errors.offset_w < float("inf")


@given(st.integers(1, 10**6), st.integers(1, 100_000))
def test_a_larger_shunt_measures_finer(shunt_uohm: int, voltage_mv: int) -> None:
    coarse = power_errors(CHIPS["ina238"], shunt_uohm, 4, voltage_mv)
    fine = power_errors(CHIPS["ina238"], 2 * shunt_uohm, 4, voltage_mv)
    assert fine.step_w == pytest.approx(coarse.step_w / 2)
    assert power_errors(CHIPS["ina238"], 0, 7, voltage_mv) == power_errors(
        CHIPS["ina238"], DRIVER_SHUNT_UOHM, 4, voltage_mv
    )
