"""Faults on demand: what each does to the tree, and that nothing of it is left when it is put right."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powerlab.boards.registry import BOARDS
from powerlab.boards.simulator import create_tree, layout
from powerlab.boards.simulator.faults.control import active, check, clear_fault, faults_of, possible, set_fault
from powerlab.boards.simulator.faults.registry import FAULTS
from powerlab.boards.simulator.load import Load
from powerlab.boards.simulator.loop import Simulator
from powerlab.boards.simulator.parts.files import SensorFiles
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot

pytestmark = pytest.mark.campaign

NAMES = (
    "nc-rail",
    "enodata",
    "stale",
    "counter-wrap",
    "dead-sensor",
    "reboot-prompt",
    "over-current",
    "mode-change",
    "clock-jump",
    "unplugged",
)
BOARD_OF = {"counter-wrap": "intel-xeon", "over-current": "jetson-agx-orin"}
TICK_NS = 10_000_000
MakeBoard = Callable[[str], Sysroot]


@pytest.fixture
def make_board(tmp_path: Path) -> MakeBoard:
    def make(name: str) -> Sysroot:
        create_tree(name, tmp_path / "board")
        return Sysroot(tmp_path / "board")

    return make


class Running:
    """A simulator whose time passes when a test says so."""

    def __init__(self, sysroot: Sysroot) -> None:
        self.simulator, self._now_ns = Simulator(sysroot), 0

    def ticks(self, count: int = 10) -> None:
        for _ in range(count):
            self._now_ns += TICK_NS
            self.simulator.tick(self._now_ns)

    def close(self) -> None:
        self.simulator.close()


@contextmanager
def running(sysroot: Sysroot) -> Iterator[Running]:
    with closing(Running(sysroot)) as board:
        board.ticks()
        yield board


MOVING = ("/simulation/", "/proc/stat", "/emc/rate", "/scaling_cur_freq", "/temp", "_event_cnt", "/cur_state")


def still(sysroot: Sysroot) -> dict[str, str]:
    """Return every file and link of the tree that does not move by itself, and the names alone of those that do."""
    found = {}
    for path in sorted(sysroot.base.rglob("*")):
        name = "/" + str(path.relative_to(sysroot.base))
        if path.is_symlink():
            found[name] = str(path.readlink())
        elif path.is_file():
            moving = any(part in name for part in MOVING) or path.read_text(errors="replace").endswith(" \n")
            found[name] = "" if moving else path.read_text(errors="replace")
    return found


def readings(sysroot: Sysroot, *patterns: str) -> dict[str, str]:
    return {path: sysroot.read(path) for pattern in patterns for path in sysroot.glob(pattern)}


INA = ("/sys/bus/i2c/drivers/ina3221x/*/iio:device*/in_*_input",)
READINGS = (*INA, "/sys/class/hwmon/*/curr*_input", "/sys/class/powercap/*/energy_uj")


def test_the_registry_has_every_fault_with_words_for_people():
    assert tuple(FAULTS) == NAMES
    for name, fault in FAULTS.items():
        assert fault.name == name
        assert fault.summary
        assert fault.__doc__
        assert bool(fault.needs) == bool(fault.lacks)


@pytest.mark.parametrize("name", NAMES)
def test_some_board_can_have_it(name):
    boards = [board.name for board in BOARDS.values() if board.simulatable]
    assert any(name in faults_of(board) for board in boards)


@pytest.mark.parametrize("name", NAMES)
def test_it_begins_and_ends_and_leaves_no_trace(make_board, name):
    sysroot = make_board(BOARD_OF.get(name, "jetson-agx-xavier"))
    with running(sysroot) as board:
        before = still(sysroot)
        set_fault(sysroot, name)
        board.ticks()
        clear_fault(sysroot, name)
        board.ticks()
        assert still(sysroot) == before
        first = readings(sysroot, *READINGS)
        board.ticks(50)
        assert readings(sysroot, *READINGS) != first


@pytest.mark.parametrize("name", NAMES)
def test_a_simulator_that_ends_puts_it_right_and_the_next_one_begins_it_again(make_board, name):
    sysroot = make_board(BOARD_OF.get(name, "jetson-agx-xavier"))
    before = still(sysroot)
    set_fault(sysroot, name)
    for _ in range(2):
        with running(sysroot):
            assert active(sysroot) == (name,)
        assert still(sysroot) == before


@pytest.mark.parametrize("board", [board.name for board in BOARDS.values() if board.simulatable])
def test_all_faults_of_a_board_at_once_do_not_break_it(make_board, board):
    sysroot = make_board(board)
    before = still(sysroot)
    names = faults_of(board)
    with running(sysroot) as run:
        for name in names:
            set_fault(sysroot, name)
            run.ticks()
        for name in names:
            clear_fault(sysroot, name)
            run.ticks()
        assert set(still(sysroot)) == set(before)


def test_an_unconnected_channel_has_its_label_and_gives_no_reading(make_board):
    sysroot = make_board("jetson-agx-xavier")
    set_fault(sysroot, "nc-rail")
    with running(sysroot):
        chip = "/sys/bus/i2c/drivers/ina3221x/1-0040/iio:device0"
        assert sysroot.read(f"{chip}/rail_name_0") == "NC"
        assert sysroot.read(f"{chip}/in_power0_input") == ""
        assert int(sysroot.read(f"{chip}/in_power1_input")) > 0


def test_on_newer_systems_it_is_switched_off_too(make_board):
    sysroot = make_board("jetson-agx-orin")
    set_fault(sysroot, "nc-rail")
    with running(sysroot):
        (label,) = sysroot.glob("/sys/bus/i2c/drivers/ina3221/1-0040/hwmon/*/in1_label")
        assert sysroot.read(label) == "NC"
        assert sysroot.read(label.replace("label", "enable")) == "0"


@pytest.mark.parametrize("name", ["enodata", "dead-sensor"])
def test_one_sensor_fails_and_the_others_go_on(make_board, name):
    sysroot = make_board("jetson-agx-xavier")
    set_fault(sysroot, name)
    with running(sysroot) as board:
        first = readings(sysroot, *INA)
        board.ticks(50)
        second = readings(sysroot, *INA)
        assert [path for path, text in second.items() if not text] == (
            [path for path in first if "0040" in path and "0_input" in path] if name == "enodata" else []
        )
        assert sum("0040" in path and "0_input" in path for path in second) == (3 if name == "enodata" else 0)
        assert first != second


def test_a_dead_temperature_is_minus_256_degrees(make_board):
    sysroot = make_board("jetson-agx-xavier")
    set_fault(sysroot, "dead-sensor")
    with running(sysroot) as board:
        for _ in range(10):
            board.ticks(1)
            assert sysroot.read("/sys/class/thermal/thermal_zone0/temp") == "-256000"


@pytest.mark.parametrize(
    ("board", "pattern"),
    [
        ("jetson-agx-xavier", INA[0]),
        ("intel-xeon", "/sys/class/powercap/*/energy_uj"),
        ("laptop", "/sys/class/*/*/power_now"),
    ],
)
def test_stale_values_stop_and_go_on(make_board, board, pattern):
    sysroot = make_board(board)
    with running(sysroot) as run:
        set_fault(sysroot, "stale")
        run.ticks()
        held = readings(sysroot, pattern)
        assert held
        run.ticks(300)
        assert readings(sysroot, pattern) == held
        clear_fault(sysroot, "stale")
        run.ticks(300)
        assert readings(sysroot, pattern) != held


def test_counters_wrap_within_the_range_they_state(make_board):
    sysroot = make_board("intel-xeon")
    set_fault(sysroot, "counter-wrap")
    zone = "/sys/class/powercap/intel-rapl:0"
    with running(sysroot) as board:
        limit = int(sysroot.read(f"{zone}/max_energy_range_uj"))
        assert limit == 100_000_000
        seen = []
        for _ in range(60):
            board.ticks(20)
            seen.append(int(sysroot.read(f"{zone}/energy_uj")))
        assert max(seen) <= limit
        assert sum(after < before for before, after in pairwise(seen)) >= 2


def test_the_counters_own_end_is_no_leap(make_board):
    """A counter with the short range counts on where the board's own one starts again."""
    sysroot = make_board("intel-xeon")
    set_fault(sysroot, "counter-wrap")
    zones = [zone for zone in layout.simulation_of("intel-xeon")["rapl"]["zones"] if zone["zone"] == "intel-rapl:0"]
    (before_wrap_j,) = (zone["before_wrap_j"] for zone in zones)
    counter = sysroot.path("/sys/class/powercap/intel-rapl:0/energy_uj")
    with running(sysroot) as board:
        last_uj, counted_j = int(counter.read_text()), 0.0
        for _ in range(100_000):
            board.ticks(20)
            value_uj = int(counter.read_text())
            step_j = (value_uj - last_uj) % 100_000_000 * 1e-6
            last_uj = value_uj
            counted_j += step_j
            assert step_j < 40
            if counted_j > 1.1 * before_wrap_j:
                return
    pytest.fail("the counter never came to its own end")


def test_counters_do_not_leap_while_somebody_measures(make_board):
    sysroot = make_board("intel-xeon")
    zone = "/sys/class/powercap/intel-rapl:0"
    with running(sysroot) as board:
        before = sysroot.read(f"{zone}/max_energy_range_uj")
        with Load(sysroot):
            set_fault(sysroot, "counter-wrap")
            board.ticks()
            assert sysroot.read(f"{zone}/max_energy_range_uj") == before
        board.ticks()
        assert sysroot.read(f"{zone}/max_energy_range_uj") != before


def nvpmodel(sysroot: Sysroot, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = sysroot.path("/usr/sbin/nvpmodel")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=60)


def test_nvpmodel_asks_for_a_reboot_and_stays_where_it_is(make_board):
    sysroot = make_board("jetson-agx-xavier")
    set_fault(sysroot, "reboot-prompt")
    before = still(sysroot)
    asked = nvpmodel(sysroot, "-m", "2")
    assert asked.returncode != 0
    assert "DO YOU WANT TO REBOOT NOW?" in asked.stdout
    assert still(sysroot) == before
    assert nvpmodel(sysroot, "-q").stdout.split()[-1] == "0"
    assert nvpmodel(sysroot, "-m", "0").returncode == 0


def test_over_current_events_are_counted_and_halve_the_clocks(make_board):
    sysroot = make_board("jetson-agx-orin")
    with running(sysroot) as board:
        (counter,) = sysroot.glob("/sys/class/hwmon/*/oc3_event_cnt")
        assert sysroot.read(counter) == "0"
        set_fault(sysroot, "over-current")
        board.ticks(200)
        assert int(sysroot.read(counter)) >= 3
        assert "cpu 0.500" in sysroot.read(layout.CAPS_FILE)
        clear_fault(sysroot, "over-current")
        board.ticks()
        assert "0.500" not in sysroot.read(layout.CAPS_FILE)


def test_the_clocks_are_changed_once_and_only_while_something_runs(make_board):
    sysroot = make_board("jetson-agx-xavier")
    limit = f"{layout.CPU}/cpufreq/policy0/scaling_max_freq"
    before = sysroot.read(limit)
    set_fault(sysroot, "mode-change")
    with running(sysroot) as board:
        assert sysroot.read(limit) == before
        with Load(sysroot) as load:
            load.publish(1)
            board.ticks()
            assert int(sysroot.read(limit)) < int(before)
            layout.rewrite(sysroot.path(limit), before)
            board.ticks()
            assert sysroot.read(limit) == before


def test_the_wall_clock_jumps_and_comes_back(make_board):
    sysroot = make_board("jetson-agx-xavier")
    assert sysroot.read(layout.CLOCK_FILE) == "0"
    set_fault(sysroot, "clock-jump")
    with running(sysroot) as board:
        assert sysroot.read(layout.CLOCK_FILE) == "3600"
        clear_fault(sysroot, "clock-jump")
        board.ticks()
        assert sysroot.read(layout.CLOCK_FILE) == "0"


def test_programs_print_the_time_that_jumped(tmp_path):
    """JetPack 6 is the first whose tegrastats prints a date."""
    create_tree("jetson-orin-nano", tmp_path / "board", jetpack=6)
    sysroot = Sysroot(tmp_path / "board")
    set_fault(sysroot, "clock-jump")
    with (
        running(sysroot),
        subprocess.Popen(
            [sysroot.path("/usr/bin/tegrastats"), "--interval", "10"], stdout=subprocess.PIPE, text=True
        ) as program,
    ):
        assert program.stdout is not None
        printed = datetime.strptime(program.stdout.readline()[:19], "%m-%d-%Y %H:%M:%S")
        program.terminate()
    ahead_s = (printed - datetime.now()).total_seconds()
    assert 3600 - 120 < ahead_s < 3600 + 2


@pytest.mark.parametrize(
    ("board", "gone"),
    [
        ("jetson-agx-xavier", "/sys/bus/i2c/drivers/ina3221x/1-0040/iio:device0"),
        ("jetson-agx-orin", "/sys/class/hwmon/hwmon*"),
        ("intel-xeon", "/sys/class/powercap/intel-rapl:0"),
        ("ampere-altra", "/sys/class/hwmon/hwmon*"),
    ],
)
def test_an_unplugged_sensor_is_gone_with_every_link_to_it(make_board, board, gone):
    sysroot = make_board(board)
    before = sysroot.glob(gone)
    assert before
    with running(sysroot) as run:
        set_fault(sysroot, "unplugged")
        run.ticks(20)
        after = sysroot.glob(gone)
        assert len(after) < len(before)
        dangling = [path for path in sysroot.base.rglob("*") if path.is_symlink() and not path.exists()]
        assert dangling == []


def test_names_of_no_fault_in_the_file_do_nothing(make_board):
    sysroot = make_board("jetson-agx-xavier")
    before = still(sysroot)
    layout.rewrite(sysroot.path(layout.FAULTS_FILE), "nonsense\ncounter-wrap\nstal")
    with running(sysroot):
        assert still(sysroot) == before


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from(NAMES), max_size=6))
def test_setting_and_clearing_keeps_a_list_without_doubles(tmp_path_factory, names):
    base = tmp_path_factory.mktemp("board")
    create_tree("jetson-agx-orin", base)
    sysroot = Sysroot(base)
    simulation = layout.simulation_of("jetson-agx-orin")
    for name in names:
        if possible(simulation, name):
            set_fault(sysroot, name)
    found = active(sysroot)
    assert sorted(found) == sorted({name for name in names if possible(simulation, name)})
    for name in found:
        clear_fault(sysroot, name)
    assert active(sysroot) == ()


def test_what_a_board_cannot_have_is_refused_with_what_it_can(make_board):
    with pytest.raises(PowerlabError, match=r"intel-xeon cannot have the fault nc-rail: it has no INA3221.*stale"):
        set_fault(make_board("intel-xeon"), "nc-rail")
    with pytest.raises(PowerlabError, match="there is no fault 'nonsense'; choose one of: nc-rail"):
        check("jetson-agx-xavier", ["nonsense"])


def test_only_a_simulated_board_can_have_faults(tmp_path):
    with pytest.raises(PowerlabError, match="is not a simulated board"):
        set_fault(Sysroot(tmp_path), "stale")


def test_a_damaged_tree_is_a_sentence(make_board):
    sysroot = make_board("jetson-agx-xavier")
    sysroot.path(layout.FAULTS_FILE).unlink()
    with pytest.raises(PowerlabError, match="write a new board with"):
        set_fault(sysroot, "stale")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a").write_text("0       \n")
    found = SensorFiles()
    found.open(Sysroot(tmp_path), ["/a"])
    yield found
    found.close()


def test_a_file_held_twice_must_be_released_twice(files, tmp_path):
    files.write("/a", 1)
    files.hold("/a")
    files.hold("/a")
    files.release("/a")
    files.write("/a", 2)
    assert (tmp_path / "a").read_text().split() == ["1"]
    files.release("/a")
    files.write("/a", 3)
    assert (tmp_path / "a").read_text().split() == ["3"]


def test_a_file_that_was_replaced_is_found_again(files, tmp_path):
    files.hold("/a")
    (tmp_path / "a").unlink()
    (tmp_path / "a").write_text("7       \n")
    files.release("/a")
    files.write("/a", 8)
    assert (tmp_path / "a").read_text().split() == ["8"]


def test_a_file_that_is_gone_for_good_is_no_error(files, tmp_path):
    files.hold("/a")
    (tmp_path / "a").unlink()
    files.release("/a")
    files.write("/a", 8)
    assert not (tmp_path / "a").exists()


def test_values_can_be_altered_and_are_themselves_again(files, tmp_path):
    files.alter("/a", lambda value: value % 10)
    files.write("/a", 123)
    assert (tmp_path / "a").read_text().split() == ["3"]
    files.alter("/a", None)
    files.write("/a", 123)
    assert (tmp_path / "a").read_text().split() == ["123"]
