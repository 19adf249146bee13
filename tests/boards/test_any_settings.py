"""Whatever is set on a simulated Jetson, its physics stays physics and its simulator goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powerlab.boards.simulator import create_tree, layout, pacer
from powerlab.boards.simulator.load import Load
from powerlab.boards.simulator.loop import Simulator
from powerlab.boards.simulator.physics import BoardState, Core, PowerModel, Work, inference_s
from powerlab.boards.simulator.state import read_settings
from powerlab.sysroot import Sysroot

CPU = "/sys/devices/system/cpu"
BOARDS = ["jetson-agx-orin", "jetson-tx2", "jetson-nano"]
GOVERNORS = st.sampled_from(["performance", "powersave", "schedutil", "userspace", "ondemand"])


@contextmanager
def board_of(name: str) -> Iterator[Sysroot]:
    with TemporaryDirectory() as directory:
        create_tree(name, directory)
        yield Sysroot(Path(directory))


@st.composite
def writes(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Settings a user with every right might make: path patterns and values, some of them senseless."""
    low, high = sorted(draw(st.tuples(st.integers(1, 3_000_000), st.integers(1, 3_000_000))))
    return [
        (f"{CPU}/cpufreq/policy*/scaling_governor", draw(GOVERNORS)),
        (f"{CPU}/cpufreq/policy*/scaling_min_freq", str(low)),
        (f"{CPU}/cpufreq/policy*/scaling_max_freq", str(high)),
        (f"{CPU}/cpu[2-9]/online", draw(st.sampled_from(["0", "1"]))),
        (f"{CPU}/cpu*/cpuidle/state*/disable", draw(st.sampled_from(["0", "1"]))),
        ("/sys/class/devfreq/*/max_freq", str(draw(st.integers(1, 1_500_000_000)))),
        ("/sys/kernel/nvpmodel_*_cap/*", str(draw(st.integers(0, 5_000_000_000)))),
        (layout.ROOM_FILE, str(draw(st.integers(-40_000, 150_000)))),
        (layout.CGROUP + "/cpu.max", f"{draw(st.integers(1000, 10**7))} 100000"),
    ]


def make(board: Sysroot, changes: list[tuple[str, str]]) -> None:
    for pattern, value in changes:
        for path in board.glob(pattern):
            layout.rewrite(board.path(path), value)


@pytest.mark.parametrize("name", BOARDS)
@settings(max_examples=25, deadline=None)
@given(changes=writes(), threads=st.integers(0, 20))
def test_every_rail_draws_something_and_the_input_feeds_all_others(
    name: str, changes: list[tuple[str, str]], threads: int
) -> None:
    with board_of(name) as board, Load(board) as load:
        load.publish(threads)
        simulator = Simulator(board)
        make(board, changes)
        for tick in range(30):
            watts = simulator.tick(tick * 100_000_000)
        simulator.close()
        assert all(value >= 0.0 for value in watts.values())
        inputs = [rail for rail in watts if rail in {"VDD_IN", "POM_5V_IN"}]
        for rail in inputs:
            others = sum(value for other, value in watts.items() if other != rail)
            assert watts[rail] > others
        readings = [int(board.read(path)) for path in board.glob("/sys/bus/i2c/drivers/*/*/*/*curr*_input")]
        assert all(reading >= 0 for reading in readings)


@pytest.mark.parametrize("name", BOARDS)
@settings(max_examples=25, deadline=None)
@given(changes=writes(), threads=st.integers(1, 20))
def test_no_inference_gets_faster_than_at_full_clocks(name: str, changes: list[tuple[str, str]], threads: int) -> None:
    simulation = layout.simulation_of(name)
    model = PowerModel.from_document(simulation)
    with board_of(name) as board:
        make(board, changes)
        found = read_settings(board, simulation)
        for policy in found.policies:
            clocks = policy.policy.cluster.freqs_khz
            assert clocks[0] <= policy.idle_khz <= clocks[-1]
            assert clocks[0] <= policy.busy_khz <= clocks[-1]
        assert simulation["emc"]["min_hz"] <= found.emc_hz <= simulation["emc"]["max_hz"]
        work, state = Work(1e9, 1e8), found.state(threads)
        fastest = Core(busy_khz=model.cpu_max_khz, idle_khz=model.cpu_max_khz)
        full = BoardState(cores=(fastest,) * state.busy_cores, busy_threads=threads, emc_hz=model.emc_max_hz)
        assert inference_s(model, state, work) >= inference_s(model, full, work) * (1.0 - 1e-12)


@pytest.mark.parametrize("text", ["", "x", "-", "1e9", "9" * 30, "\0", "12\n34"])
@pytest.mark.parametrize(
    "path",
    [
        f"{CPU}/cpufreq/policy0/scaling_max_freq",
        f"{CPU}/cpufreq/policy0/scaling_governor",
        f"{CPU}/cpu1/online",
        "/sys/kernel/nvpmodel_clk_cap/emc",
        layout.ROOM_FILE,
        layout.FAULTS_FILE,
        layout.CAPS_FILE,
        f"{layout.CGROUP}/cpu.max",
    ],
)
def test_text_that_no_kernel_would_take_stops_neither_simulator_nor_worker(
    path: str, text: str, tmp_path: Path
) -> None:
    create_tree("jetson-agx-orin", tmp_path / "tree")
    board = Sysroot(tmp_path / "tree")
    simulator = Simulator(board)
    pace = pacer(board, 2)
    board.path(path).write_text(text)
    with pace.inference():
        for tick in range(12):
            watts = simulator.tick(tick * 100_000_000)
    assert all(0.0 <= value < 100.0 for value in watts.values())
    pace.close()
    simulator.close()
