from __future__ import annotations

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.state import Settings, read_settings
from powerlab.sysroot import Sysroot

SIMULATION = layout.simulation_of("jetson-agx-xavier")
CPU = "/sys/devices/system/cpu"


def put(board: Sysroot, path: str, value: str) -> None:
    board.path(path).write_text(value + "\n")


def settings(board: Sysroot) -> Settings:
    return read_settings(board, SIMULATION)


def test_a_fresh_board_is_in_maxn(board: Sysroot) -> None:
    found = settings(board)
    assert found.online_cores == tuple(range(8))
    state = found.state(busy_threads=3)
    assert [core.busy_khz for core in state.cores] == [2265600] * 8
    assert [core.idle_khz for core in state.cores] == [1190400] * 8
    assert state.busy_cores == 3
    assert (state.gpu_share, state.emc_hz) == ((1.0,), 2133000000)


def test_governors_pick_the_clocks(board: Sysroot) -> None:
    for policy, governor in (("policy0", "performance"), ("policy2", "powersave"), ("policy4", "ondemand")):
        put(board, f"{CPU}/cpufreq/{policy}/scaling_governor", governor)
    found = {policy.policy.name: (policy.busy_khz, policy.idle_khz) for policy in settings(board).policies}
    assert found == {
        "policy0": (2265600, 2265600),
        "policy2": (1190400, 1190400),
        "policy4": (2265600, 1190400),
        "policy6": (2265600, 1190400),
    }


def test_cores_that_are_off_line_are_left_out(board: Sysroot) -> None:
    for core in (3, 6, 7):
        put(board, f"{CPU}/cpu{core}/online", "0")
    found = settings(board)
    assert found.online_cores == (0, 1, 2, 4, 5)
    assert found.state(8).busy_cores == 5


def test_caps_are_followed(board: Sysroot) -> None:
    put(board, f"{CPU}/cpufreq/policy0/scaling_max_freq", "1190400")
    put(board, "/sys/kernel/nvpmodel_emc_cap/emc_iso_cap", "1331200000")
    put(board, "/sys/devices/17000000.gv11b/devfreq/17000000.gv11b/max_freq", "624750000")
    state = settings(board).state(1)
    assert [core.busy_khz for core in state.cores[:3]] == [1190400, 1190400, 2265600]
    assert (state.gpu_share, state.emc_hz) == ((624750000 / 1377000000,), 1331200000)


def test_the_memory_rests_when_nothing_runs(board: Sysroot) -> None:
    found = settings(board)
    assert found.state(0).emc_hz < found.state(1).emc_hz


def test_a_file_that_is_being_rewritten_counts_by_its_first_line(board: Sysroot) -> None:
    board.path(f"{CPU}/cpufreq/policy0/scaling_max_freq").write_text("998400\n0\n")
    assert settings(board).state(1).cores[0].busy_khz == 998400
