"""hwmon chips of many makers: what is a rail, what it is worth, and what is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import Availability, RailQuantity
from powerlab.power.sources.hwmon.known_chips import UNSTATED_ERROR, facts, is_pmbus, is_regulator, linear11_step_w
from powerlab.power.sources.hwmon.source import Hwmon
from powerlab.power.total import choose_total
from powerlab.sysroot import Sysroot

Tree = Callable[[Mapping[str, object]], Sysroot]
ChipFiles = Callable[..., Mapping[str, object]]


def names(sysroot: Sysroot) -> list[str]:
    return [rail.name for rail in Hwmon().probe(sysroot).rails]


def total_of(sysroot: Sysroot) -> tuple[str, ...]:
    total = choose_total([Hwmon().probe(sysroot)], None)
    return () if total is None else total.rails


@pytest.fixture
def grace(tmp_path: Path) -> Sysroot:
    """Two sockets; the files lie at the devices, as drivers of the old kind have them, and hwmonN has no name."""
    meters = ["Module", "Grace", "CPU", "SysIO"]
    for number in range(8):
        device = tmp_path / f"sys/devices/LNXSYSTM:00/ACPI000D:{number:02d}"
        chip = device / f"hwmon/hwmon{7 - number}"
        chip.mkdir(parents=True)
        (chip / "device").symlink_to(device)
        (tmp_path / "sys/class/hwmon").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"sys/class/hwmon/hwmon{7 - number}").symlink_to(chip)
        for name, text in {
            "name": "power_meter",
            "power1_average": 1_000_000 * (number + 1),
            "power1_accuracy": "100.0%",
            "power1_average_interval": 50,
            "power1_average_interval_max": 1000,
            "power1_is_battery": 0,
            "power1_cap": 900_000_000,
            "power1_cap_max": 900_000_000,
            "power1_cap_hyst": 1000,
            "power1_oem_info": f"{meters[number % 4]} Power Socket {number // 4}",
        }.items():
            (device / name).write_text(f"{text}\n")
    return Sysroot(tmp_path)


def test_grace_is_read_where_its_driver_keeps_its_files(grace: Sysroot) -> None:
    assert names(grace) == [
        f"{meter} Power Socket {socket}" for socket in (0, 1) for meter in ("Module", "Grace", "CPU", "SysIO")
    ]
    assert total_of(grace) == ("hwmon:Module Power Socket 0", "hwmon:Module Power Socket 1")


def test_grace_states_its_interval_and_a_claim_of_no_error_is_no_statement(grace: Sysroot) -> None:
    rails = Hwmon().probe(grace).rails
    assert {rail.update_period_s for rail in rails} == {0.05}
    assert {rail.relative_error for rail in rails} == {UNSTATED_ERROR}
    assert {rail.resolution for rail in rails} == {0.001}


def test_a_meter_of_a_battery_is_no_rail_and_is_told(tree: Tree, hwmon_chip: ChipFiles) -> None:
    meter = {"power1_average": 12_000_000, "power1_is_battery": 1}
    probe = Hwmon().probe(tree(hwmon_chip(0, "power_meter", meter)))
    assert not probe.rails
    assert "measures a battery" in probe.detail


@pytest.mark.parametrize("device", ["BAT0", "ucsi-source-psy-USBC000:001"])
def test_what_the_power_supply_class_mirrors_is_no_rail(tmp_path: Path, device: str) -> None:
    """The class registers a chip for each supply: a battery's power is no rail, and a USB-PD port's none either."""
    supply = tmp_path / f"sys/class/power_supply/{device}"
    chip = supply / "hwmon4"
    chip.mkdir(parents=True)
    (chip / "device").symlink_to(supply)
    for name, text in {"name": device.replace("-", "_"), "power1_input": 9_000_000, "curr1_input": 900}.items():
        (chip / name).write_text(f"{text}\n")
    (tmp_path / "sys/class/hwmon").mkdir(parents=True)
    (tmp_path / "sys/class/hwmon/hwmon4").symlink_to(chip)
    assert Hwmon().probe(Sysroot(tmp_path)).availability is Availability.ABSENT


def test_chips_without_power_are_not_mentioned(tree: Tree, hwmon_chip: ChipFiles) -> None:
    files = {
        **hwmon_chip(0, "jc42", {"temp1_input": 40000, "temp1_crit": 95000}),
        **hwmon_chip(1, "nvme", {"temp1_input": 40000, "temp1_label": "Composite"}),
        **hwmon_chip(2, "nct6775", {"in0_input": 1000, "fan1_input": 900, "pwm1": 120}),
        **hwmon_chip(3, "d5next", {"power1_cap": 1, "power1_max": 2, "power1_crit": 3, "energy1_average": 4}),
    }
    probe = Hwmon().probe(tree(files))
    assert (probe.availability, probe.rails) == (Availability.ABSENT, ())


def test_scmi_gives_power_and_energy_by_the_firmware_s_labels(tree: Tree, hwmon_chip: ChipFiles) -> None:
    sysroot = tree(
        hwmon_chip(
            2,
            "scmi_sensors",
            {
                "power1_label": "BIG_CLUSTER",
                "power1_input": 3_000_000,
                "power2_label": "SYS",
                "power2_input": 1_000_000,
                "energy1_label": "BIG_CLUSTER",
                "energy1_input": 77_000_000,
                "temp1_label": "BIG",
                "temp1_input": 50_000,
            },
        )
    )
    rails = Hwmon().probe(sysroot).rails
    assert [(rail.name, rail.quantity) for rail in rails] == [
        ("scmi_sensors BIG_CLUSTER", RailQuantity.ENERGY),
        ("scmi_sensors SYS", RailQuantity.POWER),
    ]
    assert total_of(sysroot) == (), "labels are the maker's own, and rails may lie inside each other"


def test_a_supply_s_input_is_the_total_and_its_outputs_are_never_added(tree: Tree, hwmon_chip: ChipFiles) -> None:
    supply = {
        "in1_label": "vin",
        "in1_input": 230_000,
        "power1_label": "pin",
        "power1_input": 200_000_000,
        "power2_label": "pout1",
        "power2_input": 184_000_000,
    }
    sysroot = tree({**hwmon_chip(3, "dps920", supply), **hwmon_chip(4, "dps920", supply)})
    assert names(sysroot) == [f"dps920 {label} @hwmon{number}" for number in (3, 4) for label in ("pin", "pout1")]
    assert total_of(sysroot) == ("hwmon:dps920 pin @hwmon3", "hwmon:dps920 pin @hwmon4")


def test_a_regulator_inside_the_machine_is_no_supply(tree: Tree, hwmon_chip: ChipFiles) -> None:
    files = {"in1_label": "vin", "in1_input": 12_030, "power1_label": "pin", "power1_input": 90_000_000}
    sysroot = tree(hwmon_chip(3, "isl68137", files))
    assert names(sysroot) == ["isl68137 regulator_pin"]
    assert total_of(sysroot) == ()


def test_corsair_supplies_name_their_outputs(tree: Tree, hwmon_chip: ChipFiles) -> None:
    files = {
        "power1_label": "power total",
        "power1_input": 152_000_000,
        "power2_label": "power +12v",
        "power2_input": 120_000_000,
    }
    probe = Hwmon().probe(tree(hwmon_chip(0, "corsairpsu", files)))
    assert [rail.name for rail in probe.rails] == ["corsairpsu power total", "corsairpsu power +12v"]
    assert [rail.resolution for rail in probe.rails] == [0.25, 0.125]


def test_readings_without_labels_are_told_apart_by_quantity(tree: Tree, hwmon_chip: ChipFiles) -> None:
    files = {"power1_input": 5_000_000, "power2_input": 6_000_000, "energy1_input": 7_000_000}
    assert names(tree(hwmon_chip(0, "ibmaem", files))) == ["ibmaem energy1", "ibmaem", "ibmaem power2"]


def test_the_chip_s_update_interval_is_the_period(tree: Tree, hwmon_chip: ChipFiles) -> None:
    (rail,) = Hwmon().probe(tree(hwmon_chip(0, "ina226", {"power1_input": 1, "update_interval": 140}))).rails
    assert rail.update_period_s == pytest.approx(0.14)


@pytest.mark.parametrize(("text", "error"), [("95.0%", 0.05), ("0.0%", 1.0), ("", 0.1), ("about 5", 0.1)])
def test_the_stated_accuracy_counts_and_nonsense_does_not(
    tree: Tree, hwmon_chip: ChipFiles, text: str, error: float
) -> None:
    files = {"power1_average": 1_000_000, "power1_accuracy": text}
    (rail,) = Hwmon().probe(tree(hwmon_chip(0, "power_meter", files))).rails
    assert rail.relative_error == pytest.approx(error)


def test_an_unknown_reading_is_left_out_and_told(tree: Tree, hwmon_chip: ChipFiles) -> None:
    probe = Hwmon().probe(tree(hwmon_chip(0, "power_meter", {"power1_average": 4294967295000})))
    assert probe.availability is Availability.BROKEN
    assert "unknown" in probe.detail


@given(st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 1e6))
def test_a_linear11_step_lets_the_mantissa_reach_the_power(power_w: float) -> None:
    step_w = linear11_step_w(power_w)
    assert step_w >= 0
    assert math.isfinite(step_w)
    if 0 < power_w <= 1e6:
        assert step_w * 1023 >= power_w * (1 - 1e-12)
        assert step_w == 2**-16 or step_w / 2 * 1023 < power_w


@given(st.text(max_size=12), st.text(max_size=12), st.floats(0, 1e9))
def test_facts_of_any_chip(chip: str, label: str, power_w: float) -> None:
    found = facts(chip, label, power_w)
    assert found.step_w >= 0
    assert 0 < found.relative_error <= 1
    assert found.update_period_s >= 0


@pytest.mark.parametrize(
    ("label", "pmbus"), [("pin", True), ("pin1", True), ("pout12", True), ("pint", False), ("PPT", False), ("", False)]
)
def test_pmbus_labels(label: str, pmbus: bool) -> None:
    assert is_pmbus(label) is pmbus
    assert is_regulator(label, 12_000) is pmbus
    assert not is_regulator(label, 54_000)
    assert not is_regulator(label, None)
