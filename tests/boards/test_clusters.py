from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.boards.registry import BOARDS
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.clusters import clusters_of, core_numbers, cpu_max_khz, parse_cores, policies_of

SIMULATED = [board.name for board in BOARDS.values() if board.simulatable]


@pytest.mark.parametrize(
    ("text", "cores"), [("0", (0,)), ("0-3", (0, 1, 2, 3)), ("0,3-5", (0, 3, 4, 5)), ("1-2,7", (1, 2, 7))]
)
def test_a_kernels_list_of_cores(text: str, cores: tuple[int, ...]) -> None:
    assert parse_cores(text) == cores


@given(st.text(max_size=20))
def test_any_other_text_is_no_list(text: str) -> None:
    try:
        cores = parse_cores(text)
    except ValueError:
        return
    assert all(isinstance(core, int) for core in cores)


@pytest.mark.parametrize("name", SIMULATED)
def test_every_core_is_in_one_policy_of_one_cluster(name: str) -> None:
    simulation = layout.simulation_of(name)
    policies = policies_of(simulation)
    cores = [core for policy in policies for core in policy.cores]
    assert sorted(cores) == list(core_numbers(simulation)) == list(range(len(cores)))
    assert [policy.name for policy in policies] == [f"policy{policy.cores[0]}" for policy in policies]
    assert BOARDS[name].core_count in {None, len(cores)}


@pytest.mark.parametrize("name", SIMULATED)
def test_clocks_ascend_and_the_fastest_kind_of_core_is_the_measure(name: str) -> None:
    clusters = clusters_of(layout.simulation_of(name))
    for cluster in clusters:
        assert list(cluster.freqs_khz) == sorted(set(cluster.freqs_khz))
        assert cluster.low_khz in cluster.freqs_khz
        assert cluster.low_khz <= max(cluster.start_min_khz, cluster.freqs_khz[0])
    assert max(cluster.speed for cluster in clusters) == 1.0
    assert max(cluster.freqs_khz[-1] for cluster in clusters) == cpu_max_khz(layout.simulation_of(name))


def test_a_board_with_two_kinds_of_cores() -> None:
    policies = policies_of(layout.simulation_of("jetson-tx2"))
    assert [(policy.name, policy.cores, policy.cluster.name) for policy in policies] == [
        ("policy0", (0, 3, 4, 5), "CPU_A57"),
        ("policy1", (1, 2), "CPU_DENVER"),
    ]
