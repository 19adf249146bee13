from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from powerlab.boards.registry import detect
from powerlab.boards.simulator import create_tree, layout
from powerlab.boards.simulator.physics import PowerModel, components_w, rails_w
from powerlab.boards.simulator.state import read_settings
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import SIMULATION_MARKER, Sysroot

GOLDEN = {
    "/proc/device-tree/model": "Jetson-AGX\0",
    "/sys/bus/i2c/drivers/ina3221x/1-0040/iio:device0/rail_name_0": "GPU",
    "/sys/bus/i2c/drivers/ina3221x/1-0040/iio:device0/rail_name_1": "CPU",
    "/sys/bus/i2c/drivers/ina3221x/1-0040/iio:device0/rail_name_2": "SOC",
    "/sys/bus/i2c/drivers/ina3221x/1-0041/iio:device1/rail_name_0": "CV",
    "/sys/bus/i2c/drivers/ina3221x/1-0041/iio:device1/rail_name_1": "VDDRQ",
    "/sys/bus/i2c/drivers/ina3221x/1-0041/iio:device1/rail_name_2": "SYS5V",
    "/sys/bus/i2c/drivers/ina3221x/1-0041/iio:device1/in_voltage2_input": "19200",
    "/sys/bus/i2c/drivers/ina3221x/1-0041/iio:device1/in_power2_input": "2880",
    "/sys/devices/system/cpu/online": "0,1,2,3,4,5,6,7",
    "/sys/devices/system/cpu/cpu3/online": "1",
    "/sys/devices/system/cpu/cpu3/cpufreq/related_cpus": "2 3",
    "/sys/devices/system/cpu/cpufreq/policy6/scaling_governor": "schedutil",
    "/sys/devices/system/cpu/cpufreq/policy6/scaling_min_freq": "1190400",
    "/sys/devices/system/cpu/cpufreq/policy6/scaling_max_freq": "2265600",
    "/sys/devices/gpu.0/devfreq/17000000.gv11b/max_freq": "1377000000",
    "/sys/kernel/nvpmodel_emc_cap/emc_iso_cap": "0",
    "/sys/class/thermal/thermal_zone2/type": "PMIC-Die",
    "/var/lib/nvpmodel/status": "pmode:0000",
}


def everything(root: Path) -> dict[str, tuple[int, str]]:
    """Every path of a tree with its kind and permissions, and its text or where it leads."""
    found = {}
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        text = os.readlink(path) if path.is_symlink() else path.read_text() if path.is_file() else ""
        found[str(path.relative_to(root))] = (stat.S_IFMT(mode) | stat.S_IMODE(mode), text)
    return found


@pytest.mark.parametrize("jetpack", [4, 5])
def test_the_same_call_gives_the_same_tree(tmp_path: Path, jetpack: int) -> None:
    for name in ("one", "two"):
        create_tree("jetson-agx-xavier", tmp_path / name, jetpack)
    tree = everything(tmp_path / "one")
    assert tree == everything(tmp_path / "two")
    assert len(tree) > 150


def test_the_tree_holds_what_such_a_board_shows(board: Sysroot) -> None:
    assert {path: board.read(path) for path in GOLDEN} == GOLDEN
    policies = [path.rpartition("/")[2] for path in board.glob("/sys/devices/system/cpu/cpufreq/policy*")]
    assert policies == ["policy0", "policy2", "policy4", "policy6"]
    assert detect(board).name == "jetson-agx-xavier"
    assert board.simulated


def test_sensors_that_nothing_moves_say_what_an_idle_board_draws_and_not_nothing(board: Sysroot) -> None:
    """A tree without a running simulator must not pass for a board that draws 0 W."""
    readings = [int(board.read(path)) for path in board.glob("/sys/bus/i2c/drivers/*/*/*/in_power?_input")]
    model = PowerModel.from_document(layout.simulation_of("jetson-agx-xavier"))
    simulation = layout.simulation_of("jetson-agx-xavier")
    idle_w = rails_w(simulation["rails"], components_w(model, read_settings(board, simulation).state(0)))
    assert sum(readings) / 1000 == pytest.approx(sum(idle_w.values()), abs=6 * 0.096)


def test_jetpack_5_shows_the_same_chips_as_hwmon(tmp_path: Path) -> None:
    create_tree("jetson-agx-xavier", tmp_path / "board", jetpack=5)
    board = Sysroot(tmp_path / "board")
    assert board.glob("/sys/bus/i2c/drivers/ina3221x/*") == []
    labels = {board.read(path) for path in board.glob("/sys/class/hwmon/hwmon*/in[123]_label")}
    assert labels == {"GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"}
    for chip, address in (("hwmon0", "1-0040"), ("hwmon1", "1-0041")):
        assert board.read(f"/sys/class/hwmon/{chip}/name") == "ina3221"
        assert board.path(f"/sys/class/hwmon/{chip}/device").resolve().name == address
        assert board.read(f"/sys/class/hwmon/{chip}/shunt2_resistor") == "4000"
        assert board.read(f"/sys/class/hwmon/{chip}/in7_label") == "sum of shunt voltages"
    assert board.glob("/sys/class/hwmon/hwmon*/*power*") == [], "this driver has no power file"


def test_no_link_leads_out_of_the_tree(tmp_path: Path) -> None:
    create_tree("jetson-agx-xavier", tmp_path / "board", jetpack=5)
    links = [path for path in (tmp_path / "board").rglob("*") if path.is_symlink()]
    assert len(links) >= 9
    assert all(path.resolve(strict=True).is_relative_to(tmp_path / "board") for path in links)


def test_sensor_texts_have_one_width_so_that_no_reader_sees_half_a_number() -> None:
    texts = [layout.sensor_text(value) for value in (0, 7, 19200, 32760)]
    assert {len(text) for text in texts} == {layout.SENSOR_WIDTH + 1}
    assert [int(text) for text in texts] == [0, 7, 19200, 32760]


@pytest.mark.parametrize(
    ("name", "jetpack", "says"),
    [
        ("generic", None, "has no simulator"),
        ("nothing", None, "there is no board named"),
        ("jetson-agx-xavier", 6, "choose 4 or 5"),
    ],
)
def test_what_cannot_be_simulated_is_refused_and_writes_nothing(
    tmp_path: Path, name: str, jetpack: int | None, says: str
) -> None:
    with pytest.raises(PowerlabError, match=says):
        create_tree(name, tmp_path / "board", jetpack)
    assert not (tmp_path / "board").exists()


def test_a_directory_with_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(PowerlabError, match="is not empty"):
        create_tree("jetson-agx-xavier", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PowerlabError, match="cannot be written"):
        create_tree("jetson-agx-xavier", tmp_path / "file" / "board")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"board": "x"}', '{"board": "x", "jetpack": "y"}'])
def test_a_damaged_marker_is_told(board: Sysroot, text: str) -> None:
    board.path(SIMULATION_MARKER).write_text(text)
    with pytest.raises(PowerlabError, match="is not a simulated board"):
        layout.read_marker(board)


def test_a_file_is_rewritten_in_place_and_never_longer_than_its_text(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("performance\n")
    inode = path.stat().st_ino
    layout.rewrite(path, "abc")
    assert (path.read_text(), path.stat().st_ino) == ("abc\n", inode)
    path.write_text("abc\nrest of a longer text")
    assert layout.first_line(path) == "abc"
