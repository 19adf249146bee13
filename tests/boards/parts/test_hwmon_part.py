"""Simulated hwmon chips: files as the drivers write them, readings as the model says."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from powerlab.boards.registry import find_board
from powerlab.boards.simulator import create_tree, layout
from powerlab.boards.simulator.load import Load
from powerlab.boards.simulator.loop import Simulator
from powerlab.boards.simulator.parts.hwmon_chips import HwmonChips
from powerlab.sysroot import Sysroot

TICK_NS = 10_000_000
HWMON = "/sys/class/hwmon"


@pytest.fixture
def board(tmp_path: Path, request: pytest.FixtureRequest) -> Sysroot:
    create_tree(request.param, tmp_path / "board")
    return Sysroot(tmp_path / "board")


def energies_uj(board: Sysroot) -> list[int]:
    return [int(board.read(f"{HWMON}/hwmon0/energy{n}_input")) for n in range(1, 81)]


def labels(board: Sysroot, pattern: str) -> list[str]:
    return sorted(board.read(path) for path in board.glob(f"{HWMON}/{pattern}"))


@pytest.mark.parametrize("board", ["ampere-altra"], indirect=True)
def test_altra_has_a_counter_for_each_core_and_busy_ones_count_faster(board: Sysroot, simulator: Simulator) -> None:
    assert labels(board, "hwmon0/energy*_label") == [f"Core Energy {core:03d}" for core in range(80)]
    simulator.tick(0)
    before = energies_uj(board)
    with Load(board) as load:
        load.publish(10)
        drawn_j = sum(simulator.tick(tick * TICK_NS)["cores"] * 0.01 for tick in range(1, 201))
    moved = [after - start for after, start in zip(energies_uj(board), before, strict=True)]
    assert sum(moved) == pytest.approx(drawn_j * 1e6, abs=200)
    assert min(moved[:10]) > 5 * max(moved[10:])
    assert min(moved) > 0


@pytest.mark.parametrize("board", ["ampere-altra"], indirect=True)
def test_a_core_that_is_off_line_counts_nothing(board: Sysroot, simulator: Simulator) -> None:
    board.path("/sys/devices/system/cpu/cpu79/online").write_text("0\n")
    for tick in range(6):
        simulator.tick(tick * TICK_NS)
    before = energies_uj(board)
    for tick in range(6, 30):
        simulator.tick(tick * TICK_NS)
    after = energies_uj(board)
    assert after[79] == before[79]
    assert after[78] > before[78]


@pytest.mark.parametrize("board", ["ampere-altra"], indirect=True)
def test_counters_never_fall_whatever_the_load(board: Sysroot, simulator: Simulator) -> None:
    seen = []
    with Load(board) as load:
        for tick in range(60):
            load.publish((0, 80, 3)[tick // 20])
            simulator.tick(tick * TICK_NS)
            seen.append(energies_uj(board))
    assert all(b >= a for before, after in pairwise(seen) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("board", ["ampere-altra", "intel-xeon", "laptop"], indirect=True)
def test_temperatures_follow_the_warmth(board: Sysroot, simulator: Simulator) -> None:
    (path,) = board.glob(f"{HWMON}/hwmon0/temp1_input")
    with Load(board) as load:
        load.publish(80)
        for tick in range(500):
            simulator.tick(tick * TICK_NS)
    assert int(board.read(path)) > 32_000


@pytest.mark.parametrize("board", ["nvidia-grace"], indirect=True)
def test_grace_keeps_its_meters_files_at_the_devices(board: Sysroot) -> None:
    chips = board.glob(f"{HWMON}/hwmon*")
    assert len(chips) == 4
    for chip in chips:
        assert not board.path(f"{chip}/name").exists()
        assert not board.path(f"{chip}/power1_average").exists()
        assert board.read(f"{chip}/device/name") == "power_meter"
    assert labels(board, "hwmon*/device/power1_oem_info") == [
        f"{meter} Power Socket 0" for meter in ("CPU", "Grace", "Module", "SysIO")
    ]


@pytest.mark.parametrize("board", ["nvidia-grace"], indirect=True)
def test_a_meter_changes_once_in_its_interval(board: Sysroot, simulator: Simulator) -> None:
    path = f"{HWMON}/hwmon0/device/power1_average"
    texts = []
    for tick in range(100):
        simulator.tick(tick * TICK_NS)
        texts.append(board.read(path))
    changes = [tick for tick, (before, after) in enumerate(pairwise(texts)) if before != after]
    assert len(changes) >= 15
    assert min(after - before for before, after in pairwise(changes)) == 5


@pytest.mark.parametrize("board", ["nvidia-grace"], indirect=True)
def test_meters_lie_inside_each_other(board: Sysroot, simulator: Simulator) -> None:
    for tick in range(20):
        rails = simulator.tick(tick * TICK_NS)
    assert rails["Module Power Socket 0"] > rails["Grace Power Socket 0"]
    inside = rails["CPU Power Socket 0"] + rails["SysIO Power Socket 0"]
    assert rails["Grace Power Socket 0"] > inside


@pytest.mark.parametrize("board", ["apm-xgene"], indirect=True)
def test_xgene_s_readings_are_on_average_what_is_drawn(board: Sysroot, simulator: Simulator) -> None:
    sums = [0.0, 0.0]
    with Load(board) as load:
        load.publish(8)
        for tick in range(400):
            rails = simulator.tick(tick * TICK_NS)
            for index in (0, 1):
                sums[index] += int(board.read(f"{HWMON}/hwmon0/power{index + 1}_input")) * 1e-6
    assert sums[0] / 400 == pytest.approx(rails["CPU power"], rel=0.02)
    assert sums[1] / 400 == pytest.approx(rails["IO power"], rel=0.02)
    assert rails["CPU power"] == pytest.approx(25.0, abs=8.0), "about what the real one shows"


@pytest.mark.parametrize("name", ["ampere-altra", "nvidia-grace", "apm-xgene", "intel-xeon", "laptop"])
def test_every_link_is_relative_and_leads_somewhere(tmp_path: Path, name: str) -> None:
    create_tree(name, tmp_path / "there")
    (tmp_path / "there").rename(tmp_path / "moved")
    links = [path for path in (tmp_path / "moved").rglob("*") if path.is_symlink()]
    assert links
    for link in links:
        assert not str(link.readlink()).startswith("/")
        assert link.resolve().is_relative_to(tmp_path / "moved")
        assert link.exists(), link


def test_a_chip_of_any_maker_is_a_table() -> None:
    """A chip with two readings of one rail, one labelled, and a file that never moves."""
    table: dict[str, Any] = {
        "chips": [
            {
                "name": "dps920",
                "device": "i2c-7/7-0058",
                "files": {"in1_label": "vin", "in1_input": 230000},
                "readings": [
                    {"file": "power1_input", "label": "pin", "rail": "CPU power", "update_period_s": 0.1},
                    {"file": "power2_input", "label": "pout1", "rail": "CPU power", "update_period_s": 0.1},
                ],
            }
        ]
    }
    part = HwmonChips(find_board("apm-xgene"), table, "")
    files = dict(part.files({"CPU power": 12.5}))
    chip = "/sys/devices/i2c-7/7-0058/hwmon/hwmon0"
    assert files.pop(f"{chip}/power1_input").strip() == "12500000"
    assert files.pop(f"{chip}/power2_input").strip() == "12500000"
    assert files == {
        f"{chip}/name": "dps920",
        f"{chip}/in1_label": "vin",
        f"{chip}/in1_input": "230000",
        f"{chip}/power1_label": "pin",
        f"{chip}/power2_label": "pout1",
    }
    assert dict(part.links())[f"{HWMON}/hwmon0"] == "../../devices/i2c-7/7-0058/hwmon/hwmon0"


@pytest.mark.parametrize("board", ["laptop"], indirect=True)
def test_a_profile_of_the_firmware_limits_the_clocks(board: Sysroot, simulator: Simulator) -> None:
    profile = board.path("/sys/firmware/acpi/platform_profile")
    assert board.read("/sys/firmware/acpi/platform_profile_choices").split() == ["low-power", "balanced", "performance"]
    powers = {}
    with Load(board) as load:
        load.publish(2)
        for step, name in enumerate(("low-power", "balanced", "performance", "nonsense")):
            profile.write_text(f"{name}\n")
            for tick in range(40):
                powers[name] = simulator.tick((step * 40 + tick) * TICK_NS)["package-0"]
    assert powers["low-power"] < powers["balanced"] < powers["performance"]
    assert powers["nonsense"] == powers["performance"], "what the firmware does not know it does not take"
    assert layout.simulation_of("laptop")["platform_profile"]["start"] == "balanced"
