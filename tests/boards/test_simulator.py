from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from child_process import ChildProcess
from powerlab.boards.simulator import create_tree, layout, loop, simulated_board
from powerlab.boards.simulator.load import Load
from powerlab.boards.simulator.loop import Simulator
from powerlab.boards.simulator.physics import PowerModel, components_w
from powerlab.boards.simulator.physics import rails_w as model_w
from powerlab.boards.simulator.process import running
from powerlab.boards.simulator.state import read_settings
from powerlab.cli import main
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot

SIMULATION = layout.simulation_of("jetson-agx-xavier")
MODEL = PowerModel.from_document(SIMULATION)
CPU = "/sys/devices/system/cpu"
TICK_NS = 10_000_000
PATIENCE_S = 30.0


def rails_w(board: Sysroot) -> dict[str, float]:
    """What the board's own sensor files say, by rail."""
    found = {}
    for label in board.glob("/sys/bus/i2c/drivers/ina3221x/*/iio:device*/rail_name_*"):
        chip, _, channel = label.rpartition("/rail_name_")
        found[board.read(label)] = int(board.read(f"{chip}/in_power{channel}_input")) / 1000
    return found


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.005)


@pytest.fixture
def simulator(board: Sysroot) -> Iterator[Simulator]:
    simulator = Simulator(board, seed=3)
    yield simulator
    simulator.close()


def test_the_sensors_say_on_average_what_the_model_draws(board: Sysroot, simulator: Simulator) -> None:
    count = 400
    sums = dict.fromkeys(("GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"), 0.0)
    with Load(board) as load:
        load.publish(8)
        for tick in range(count):
            true_w = simulator.tick(tick * TICK_NS)
            for rail, watts in rails_w(board).items():
                sums[rail] += watts
    state = read_settings(board, SIMULATION).state(8)
    assert true_w == model_w(SIMULATION["rails"], components_w(MODEL, state))
    for rail, watts in true_w.items():
        assert sums[rail] / count == pytest.approx(watts, abs=0.05), rail


def test_every_reading_is_one_of_the_chips_steps(board: Sysroot, simulator: Simulator) -> None:
    for tick in range(20):
        simulator.tick(tick * TICK_NS)
        assert all(watts * 1000 % 192 == 0 for watts in rails_w(board).values())


def test_the_same_seed_gives_the_same_readings(tmp_path: Path) -> None:
    def readings(name: str, seed: int) -> list[dict[str, float]]:
        create_tree("jetson-agx-xavier", tmp_path / name)
        board = Sysroot(tmp_path / name)
        simulator = Simulator(board, seed)
        found = []
        for tick in range(20):
            simulator.tick(tick * TICK_NS)
            found.append(rails_w(board))
        simulator.close()
        return found

    assert readings("one", 5) == readings("two", 5) != readings("three", 6)


def test_jetpack_5_files_move_too(tmp_path: Path) -> None:
    create_tree("jetson-agx-xavier", tmp_path / "board", jetpack=5)
    board = Sysroot(tmp_path / "board")
    simulator = Simulator(board)
    true_w = simulator.tick(0)
    simulator.close()
    chip = "/sys/class/hwmon/hwmon1"
    drawn_w = int(board.read(f"{chip}/in3_input")) * int(board.read(f"{chip}/curr3_input")) / 1e6
    assert board.read(f"{chip}/in3_label") == "SYS5V"
    assert drawn_w == pytest.approx(true_w["SYS5V"], abs=0.6)


def test_the_true_energy_is_kept_beside_the_readings(board: Sysroot, simulator: Simulator) -> None:
    true_j = 0.0
    for tick in range(101):
        watts = sum(simulator.tick(tick * TICK_NS).values())
        true_j += watts * 0.01 if tick else 0.0
    now_ns, energy_uj = map(int, board.read(layout.ENERGY_FILE).split())
    assert now_ns == 100 * TICK_NS
    assert energy_uj / 1e6 == pytest.approx(true_j)
    assert energy_uj / 1e6 == pytest.approx(watts * 1.0)


def test_a_mode_that_is_set_shows_in_the_watts_and_clocks(board: Sysroot, simulator: Simulator) -> None:
    with Load(board) as load:
        load.publish(8)
        before_w = simulator.tick(0)
        assert board.read(f"{CPU}/cpufreq/policy0/scaling_cur_freq") == "2265600"
        subprocess.run([board.path("/usr/sbin/nvpmodel"), "-m", "2"], stdin=subprocess.DEVNULL, check=True)
        for tick in range(1, 11):
            after_w = simulator.tick(tick * TICK_NS)
        assert after_w["CPU"] < before_w["CPU"] / 3
        assert board.read(f"{CPU}/cpufreq/policy0/scaling_cur_freq") == "1190400"


def test_cores_switched_one_by_one_show_in_the_kernels_lists(board: Sysroot, simulator: Simulator) -> None:
    for core in (6, 7):
        board.path(f"{CPU}/cpu{core}/online").write_text("0\n")
    simulator.tick(0)
    for tick in range(1, 11):
        simulator.tick(tick * TICK_NS)
    assert board.read(f"{CPU}/online") == "0,1,2,3,4,5"
    assert board.read(f"{CPU}/offline") == "6,7"
    assert board.read(f"{CPU}/cpufreq/policy6/affected_cpus") == ""


def test_a_setting_that_is_just_being_written_leaves_the_board_as_it_was(board: Sysroot, simulator: Simulator) -> None:
    before_w = simulator.tick(0)
    board.path(f"{CPU}/cpufreq/policy0/scaling_max_freq").write_text("")
    for tick in range(1, 11):
        assert simulator.tick(tick * TICK_NS) == before_w


def test_a_busy_board_gets_warm(board: Sysroot, simulator: Simulator) -> None:
    def temperature() -> int:
        return int(board.read("/sys/class/thermal/thermal_zone0/temp"))

    cold = temperature()
    with Load(board) as load:
        load.publish(8)
        for second in range(120):
            simulator.tick(second * 1_000_000_000)
    assert 45_000 < temperature() < 70_000
    assert cold == 30_000
    assert board.read("/sys/class/thermal/thermal_zone2/temp") == "100000", "as the real one always says"


def test_a_simulated_board_runs_and_leaves_nothing_behind() -> None:
    with simulated_board("jetson-agx-xavier") as board:
        assert board.simulated
        assert rails_w(board)["SYS5V"] > 2.0, "every sensor has moved once"

        def stamp() -> int:
            return int(board.read(layout.ENERGY_FILE).split()[0])

        first = stamp()
        wait_until(lambda: stamp() > first)
        with Load(board) as load:
            load.publish(8)
            wait_until(lambda: rails_w(board)["CPU"] > 10.0)
        wait_until(lambda: rails_w(board)["CPU"] < 3.0)
    assert not board.base.exists()


def test_an_unknown_board_is_refused_before_anything_starts() -> None:
    with pytest.raises(PowerlabError, match="there is no board named"), simulated_board("nothing"):
        pytest.fail("it does not run")


def test_a_directory_that_is_no_board_is_told_by_the_process(tmp_path: Path) -> None:
    with pytest.raises(PowerlabError, match="is not a simulated board"), running(tmp_path):
        pytest.fail("it does not run")


def test_a_damaged_tree_is_told_by_the_process(board: Sysroot) -> None:
    board.path(f"{CPU}/cpu0/online").unlink()
    with pytest.raises(PowerlabError, match="is damaged"), running(board.base):
        pytest.fail("it does not run")


def test_the_simulator_ends_when_the_tree_is_removed(board: Sysroot) -> None:
    ticks = iter(range(100))

    def going_on() -> bool:
        if next(ticks) == 3:
            board.base.rename(board.base.with_name("elsewhere"))
        return True

    loop.run(board.base, going_on, ready=lambda: None)
    assert next(ticks) < 50


PARENT = """
import sys, time
import psutil
from powerlab.boards.simulator.process import running, simulated_board
with running(sys.argv[1]) if len(sys.argv) > 1 else simulated_board("jetson-agx-xavier") as board:
    print(psutil.Process().children()[0].pid, board.base, flush=True)
    time.sleep(600)
"""


def kill_parent_of_a_simulator(*arguments: str) -> tuple[int, Path]:
    """Start a process that runs a simulated board, kill it, and return the simulator's process and directory."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT, *arguments], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid, directory = parent.stdout.readline().split()
    assert Sysroot(Path(directory)).simulated
    assert os.getpgid(int(pid)) != os.getpgid(parent.pid), "Ctrl-C at the terminal must not reach it"
    parent.kill()
    parent.communicate()
    return int(pid), Path(directory)


def test_a_temporary_tree_goes_with_a_parent_that_was_killed_and_any_other_stays(board: Sysroot) -> None:
    _, temporary = kill_parent_of_a_simulator()
    wait_until(lambda: not temporary.exists())
    _, lasting = kill_parent_of_a_simulator(str(board.base))
    assert lasting == board.base
    assert board.simulated


def test_a_simulator_whose_parent_is_gone_before_it_looks_ends_too(board: Sysroot) -> None:
    command = [sys.executable, "-m", "powerlab.boards.simulator", "--with-parent", "0", str(board.base)]
    assert subprocess.run(command, check=False, timeout=PATIENCE_S, capture_output=True).returncode == 0


def test_the_simulator_ends_with_the_process_that_started_it(board: Sysroot) -> None:
    simulator_pid, _ = kill_parent_of_a_simulator(str(board.base))

    def is_gone() -> bool:
        try:
            return Path(f"/proc/{simulator_pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    wait_until(is_gone)


def test_the_command_moves_the_sensors_until_it_is_interrupted(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "powerlab.cli", "boards", "simulate", "jetson-agx-xavier", str(tmp_path / "b")]
    with ChildProcess([*command, "--run"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "use it with --sysroot" in process.stdout.readline()
        assert "Ctrl-C stops" in process.stdout.readline()
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, "")
    assert "the directory is kept" in out
    assert Sysroot(tmp_path / "b").simulated
    assert main(["boards", "simulate", "jetson-agx-xavier", str(tmp_path / "b")]) == 2
