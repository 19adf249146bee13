"""How a simulated board is set when it has booted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsons import IDS, JETSONS
from powerlab.boards.registry import find_board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.clusters import clusters_of, core_numbers
from powerlab.boards.simulator.start import (
    cpu_cap_khz,
    mode_cores,
    modes_of,
    nearest_not_above,
    start_mode,
    start_settings,
)

EVERY = pytest.mark.parametrize(("name", "jetpack"), JETSONS, ids=IDS)
TABLES = st.lists(st.integers(1, 10**10), min_size=1, max_size=30, unique=True).map(sorted)


@given(TABLES, st.integers(1, 2 * 10**10))
def test_a_cap_leaves_the_highest_clock_that_is_not_above_it(table: list[int], cap: int) -> None:
    left = nearest_not_above(table, cap)
    assert left in table
    if cap >= table[0]:
        assert left <= cap
        assert not [clock for clock in table if left < clock <= cap]
    else:
        assert left == table[0], "no clock is below the lowest"


@given(TABLES, st.sampled_from([-1, 0]))
def test_no_cap_leaves_every_clock(table: list[int], cap: int) -> None:
    assert nearest_not_above(table, cap) == table[-1]


@EVERY
def test_a_jetpacks_modes_have_numbers_and_names_of_their_own(name: str, jetpack: int) -> None:
    modes = modes_of(find_board(name), jetpack)
    assert modes
    for values in ([mode.id for mode in modes], [mode.name for mode in modes]):
        assert len(set(values)) == len(values)


@EVERY
def test_the_modes_are_within_what_the_board_can_do(name: str, jetpack: int) -> None:
    simulation = layout.simulation_of(name)
    for mode in modes_of(find_board(name), jetpack):
        cores = mode_cores(simulation, mode)
        assert len(cores) == mode.cores
        assert set(cores) <= set(core_numbers(simulation))
        assert set(simulation["cpu"].get("fixed_cores", ())) <= set(cores)
        caps = [cpu_cap_khz(simulation, mode, cluster) for cluster in clusters_of(simulation)]
        assert max(caps) == mode.cpu_khz
        for cluster, cap in zip(clusters_of(simulation), caps, strict=True):
            assert cap == -1 or cluster.freqs_khz[0] <= cap <= cluster.freqs_khz[-1]
        assert mode.gpu_hz == -1 or mode.gpu_hz <= simulation["gpu_devfreq"]["freqs_hz"][-1]
        assert 0 <= mode.emc_hz <= simulation["emc"]["max_hz"]


@EVERY
def test_the_board_boots_in_a_mode_that_needs_no_reboot(name: str, jetpack: int) -> None:
    board, simulation = find_board(name), layout.simulation_of(name)
    mode = start_mode(board, simulation, jetpack)
    assert not mode.requires_reboot
    settings = start_settings(board, simulation, jetpack)
    assert settings.online_cores == mode_cores(simulation, mode)
    assert all(policy.idle_khz <= policy.busy_khz for policy in settings.policies)


def test_a_board_without_modes_boots_without_caps() -> None:
    board = find_board("intel-xeon")
    simulation = layout.simulation_of("intel-xeon")
    settings = start_settings(board, simulation, None)
    assert settings.online_cores == core_numbers(simulation)
    for policy in settings.policies:
        assert policy.busy_khz == policy.policy.cluster.freqs_khz[-1]


def test_each_kind_of_core_has_its_own_cap() -> None:
    simulation = layout.simulation_of("jetson-tx2")
    denver = next(mode for mode in find_board("jetson-tx2").vendor_modes if mode.name == "MAXP_CORE_DENVER")
    caps = {cluster.name: cpu_cap_khz(simulation, denver, cluster) for cluster in clusters_of(simulation)}
    assert caps == {"CPU_A57": 345600, "CPU_DENVER": 2035200}
    assert mode_cores(simulation, denver) == (0, 1)
