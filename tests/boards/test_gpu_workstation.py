"""A simulated workstation with two NVIDIA cards, whose library is loaded the way the real one is."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.boards.registry import BOARDS, detect
from powerlab.boards.simulator import create_tree, layout, simulated_board
from powerlab.boards.simulator.cards import (
    REASON_IDLE,
    REASON_POWER_BRAKE,
    REASON_POWER_CAP,
    Card,
    Demand,
    card_of,
    relative_clock,
    relative_power,
    working_point,
)
from powerlab.boards.simulator.faults.control import clear_fault, set_fault
from powerlab.boards.simulator.load import Load
from powerlab.boards.simulator.loop import Simulator
from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Availability
from powerlab.domain.quantity import Provenance
from powerlab.measure.energy.total import total_energy
from powerlab.modes.controller import ModeController
from powerlab.modes.knobs.nvml_limit.knob import NvmlLimit
from powerlab.power.base import PolledChannel
from powerlab.power.registry import probe_all
from powerlab.power.sampling.recorder import Recorder
from powerlab.power.sources.nvml import Nvml
from powerlab.power.total import choose_total
from powerlab.sysroot import Sysroot
from powerlab.throttling.nvml_violations import NvmlViolations
from simulation_truth import true_energy, wait_until

NAME = "gpu-workstation"
CARDS = "/simulation/nvml"
TICK_NS = 10_000_000
IDLE_W = {"GPU0": 17.0, "GPU1": 16.0}


@pytest.fixture
def tree(tmp_path: Path) -> Sysroot:
    create_tree(NAME, tmp_path / "board")
    return Sysroot(tmp_path / "board")


class Clock:
    """A simulator whose time a test moves."""

    def __init__(self, sysroot: Sysroot) -> None:
        self.simulator, self._now_ns = Simulator(sysroot, seed=5), 0

    def run(self, seconds: float) -> dict[str, float]:
        """Move on, and return what each rail truly drew at the end."""
        for _ in range(round(seconds * 1e9) // TICK_NS):
            self._now_ns += TICK_NS
            true_w = self.simulator.tick(self._now_ns)
        return true_w


@pytest.fixture
def clock(tree: Sysroot) -> Iterator[Clock]:
    clock = Clock(tree)
    yield clock
    clock.simulator.close()


def put(sysroot: Sysroot, name: str, value: object, card: int = 0) -> None:
    sysroot.path(f"{CARDS}/gpu{card}/{name}").write_text(f"{value}\n")


def get(sysroot: Sysroot, name: str, card: int = 0) -> int:
    return int(sysroot.read(f"{CARDS}/gpu{card}/{name}"))


def read(sysroot: Sysroot, rail: str) -> float:
    (channel,) = (found for found in Nvml().channels(sysroot) if found.rail.name == rail)
    assert isinstance(channel, PolledChannel)
    value = channel.read()
    assert isinstance(value, float)
    return value


def test_the_board_is_known_and_its_total_holds_package_memory_and_cards(tree: Sysroot) -> None:
    assert detect(tree).name == NAME
    probes = probe_all(tree)
    found = {probe.source: [rail.name for rail in probe.rails] for probe in probes if probe.rails}
    assert found == {
        "rapl": ["package-0", "package-0/dram"],
        "nvml": [f"GPU{card}{kind}" for card in (0, 1) for kind in ("", " instant", " average")],
    }
    assert {rail.provenance for probe in probes for rail in probe.rails} == {Provenance.SIMULATED}
    total = choose_total(probes, detect(tree))
    assert total == BOARDS[NAME].total
    assert NvmlLimit().probe(tree).availability is Availability.AVAILABLE
    assert NvmlViolations().probe(tree).availability is Availability.AVAILABLE


def test_a_tree_without_its_simulator_shows_cards_at_rest(tree: Sysroot) -> None:
    for rail, watts in IDLE_W.items():
        assert read(tree, f"{rail} instant") == watts
        assert read(tree, f"{rail} average") == watts
        assert read(tree, rail) > 0.0


def test_cards_rest_from_the_first_moment_on(tree: Sysroot, clock: Clock) -> None:
    """Nothing of ours computes there; a leap at the start would be energy that nobody used."""
    for _ in range(20):
        true_w = clock.run(0.01)
        assert {rail: true_w[rail] for rail in IDLE_W} == IDLE_W
    clock.run(2.0)
    for card, (rail, watts) in enumerate(IDLE_W.items()):
        assert read(tree, f"{rail} instant") == pytest.approx(watts, rel=0.03)
        assert get(tree, "clock_graphics_mhz", card) == 210
        assert get(tree, "clocks_event_reasons", card) == REASON_IDLE
        assert get(tree, "violation_power_ns", card) == 0


def test_a_card_under_load_reaches_its_limit_and_says_so(tree: Sysroot, clock: Clock) -> None:
    put(tree, "load", "1.00")
    true_w = clock.run(3.0)
    assert 200.0 < true_w["GPU0"] <= 230.0
    assert true_w["GPU1"] == IDLE_W["GPU1"]
    assert read(tree, "GPU0 instant") == pytest.approx(true_w["GPU0"], rel=0.03)
    assert read(tree, "GPU0 average") == pytest.approx(true_w["GPU0"], rel=0.01)
    assert get(tree, "clocks_event_reasons") == REASON_POWER_CAP
    assert 2_500_000_000 < get(tree, "violation_power_ns") <= 3_000_000_000
    assert get(tree, "utilisation_percent") == 100
    assert get(tree, "temperature_c") > 30


def test_the_average_follows_a_second_late(tree: Sysroot, clock: Clock) -> None:
    clock.run(2.0)
    put(tree, "load", "0.50")
    true_w = clock.run(0.5)
    assert read(tree, "GPU0 instant") == pytest.approx(true_w["GPU0"], rel=0.03)
    assert IDLE_W["GPU0"] < read(tree, "GPU0 average") < 0.7 * true_w["GPU0"]
    clock.run(1.0)
    assert read(tree, "GPU0 average") == pytest.approx(true_w["GPU0"], rel=0.02)


def test_the_energy_counter_counts_what_was_drawn(tree: Sysroot, clock: Clock) -> None:
    clock.run(0.5)
    put(tree, "load", "0.40")
    true_w = clock.run(1.0)["GPU0"]
    before_j = read(tree, "GPU0")
    clock.run(5.0)
    # The counter moves every 0.1 s.
    assert read(tree, "GPU0") - before_j == pytest.approx(5.0 * true_w, abs=0.2 * true_w)


def test_the_energy_counter_goes_on_when_the_simulator_starts_again(tree: Sysroot, clock: Clock) -> None:
    clock.run(5.0)
    before_j = read(tree, "GPU0")
    other = Clock(tree)
    other.run(5.0)
    other.simulator.close()
    assert read(tree, "GPU0") - before_j == pytest.approx(5.0 * IDLE_W["GPU0"], rel=0.1)


def test_a_locked_card_keeps_its_clock_and_rests_a_little_warmer(tree: Sysroot, clock: Clock) -> None:
    put(tree, "locked_clocks_mhz", "1050-1050")
    true_w = clock.run(0.2)
    assert get(tree, "clock_graphics_mhz") == 1050
    assert IDLE_W["GPU0"] < true_w["GPU0"] < IDLE_W["GPU0"] + 5.0
    put(tree, "load", "1.00")
    true_w = clock.run(0.2)
    assert get(tree, "clock_graphics_mhz") == 1050
    assert true_w["GPU0"] < 60.0
    assert get(tree, "clocks_event_reasons") == 0


@pytest.mark.parametrize("name", ["load", "power_limit_mw", "locked_clocks_mhz"])
def test_a_file_that_is_just_being_written_changes_nothing(tree: Sysroot, clock: Clock, name: str) -> None:
    before = clock.run(0.2)
    put(tree, name, "")
    assert clock.run(0.2) == before


def test_modes_change_what_a_loaded_card_draws_and_are_put_back(tree: Sysroot, tmp_path: Path, clock: Clock) -> None:
    controller = ModeController(tree, tmp_path / "state")
    put(tree, "load", "1.00")
    drawn = {"current": clock.run(1.0)["GPU0"]}
    for name in ("gpu-limit=172W", "gpu-limit=115W", "gpu-lock=1050MHz", "gpu-limit=115W+gpu-lock=1575MHz"):
        with controller.applied(name):
            drawn[name] = clock.run(1.0)["GPU0"]
            assert controller.drifted(name) is None
    assert drawn["current"] > 215 > drawn["gpu-limit=172W"] > 150 > drawn["gpu-limit=115W"] > 90
    assert drawn["gpu-lock=1050MHz"] < 60
    assert drawn["gpu-limit=115W+gpu-lock=1575MHz"] == pytest.approx(115, abs=7)
    assert clock.run(1.0)["GPU0"] == drawn["current"]


def test_a_limit_that_a_mode_has_set_is_no_throttling(tree: Sysroot, tmp_path: Path, clock: Clock) -> None:
    put(tree, "load", "1.00", card=1)
    with ModeController(tree, tmp_path / "state").applied("gpu-limit=115W"):
        clock.run(1.0)
        watching = NvmlViolations().start(tree)
        clock.run(2.0)
        watching.sample()
        assert watching.finish() == ()
    assert get(tree, "violation_power_ns", card=1) > 2_000_000_000


def test_over_current_pulls_the_power_brake(tree: Sysroot, clock: Clock) -> None:
    put(tree, "load", "1.00")
    clock.run(1.0)
    set_fault(tree, "over-current")
    clock.run(0.5)
    watching = NvmlViolations().start(tree)
    watching.sample()
    assert watching.finish() == ("the power brake signal of its supply slowed GPU0 down in 1 of 1 looks",)
    assert get(tree, "clock_graphics_mhz") == 1050
    clear_fault(tree, "over-current")
    clock.run(0.5)
    assert get(tree, "clock_graphics_mhz") > 1900


def test_measured_energy_is_the_true_one_within_its_stated_uncertainty() -> None:
    with simulated_board(NAME) as board, Load(board) as load:
        total = choose_total(probe_all(board), detect(board))
        assert total is not None
        with Recorder(board, total.rails, period_s=0.01) as recorder:
            wait_until(lambda: recorder.rounds >= 20)
            start_ns, start_j = true_energy(board)
            load.publish(8)
            wait_until(lambda: true_energy(board)[0] > start_ns + 600_000_000)
            put(board, "load", "0.80")
            wait_until(lambda: true_energy(board)[0] > start_ns + 1_800_000_000)
            end_ns, end_j = true_energy(board)
            wait_until(lambda: true_energy(board)[0] > end_ns + 400_000_000)
            traces = recorder.stop()
        measured = total_energy(total, traces, (start_ns, end_ns))
    assert measured.provenance is Provenance.SIMULATED
    assert measured.energy_j == pytest.approx(end_j - start_j, abs=measured.half_width_j)
    assert measured.half_width_j < 0.4 * measured.energy_j
    assert sum(recorder.failed_reads.values()) == 0


def test_without_the_library_the_board_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    core = importlib.import_module("powerlab.native._native")
    monkeypatch.setattr(core, "__file__", str(tmp_path / "elsewhere.so"))
    with pytest.raises(PowerlabError, match="install powerlab anew"):
        create_tree(NAME, tmp_path / "board")


def card() -> Card:
    simulation = layout.simulation_of(NAME)
    return card_of(0, simulation["nvml"]["cards"][0], simulation["power"])


DEMANDS = st.builds(
    Demand,
    load=st.floats(0.0, 1.0),
    limit_w=st.floats(100.0, 230.0),
    locked_mhz=st.none()
    | st.tuples(st.sampled_from(card().clocks_mhz), st.sampled_from(card().clocks_mhz)).map(
        lambda pair: (min(pair), max(pair))
    ),
    braked=st.booleans(),
)


@given(demand=DEMANDS)
def test_a_card_never_draws_more_than_its_limit(demand: Demand) -> None:
    point = working_point(card(), demand)
    assert card().base_w + point.share * card().changing_w <= demand.limit_w + 1e-6
    assert 0.0 <= point.share <= 1.0


@given(demand=DEMANDS)
def test_a_card_runs_at_a_clock_it_has_and_says_why(demand: Demand) -> None:
    point = working_point(card(), demand)
    assert point.clock_mhz in card().clocks_mhz
    assert bool(point.reasons & REASON_IDLE) == (demand.load == 0.0)
    assert bool(point.reasons & REASON_POWER_BRAKE) == demand.braked
    if demand.locked_mhz:
        assert point.clock_mhz <= demand.locked_mhz[1]
    if not point.reasons and not demand.locked_mhz:
        assert point.clock_mhz == card().clocks_mhz[-1]


@given(demand=DEMANDS, more_w=st.floats(0.0, 100.0))
def test_more_watts_never_slow_a_card_down(demand: Demand, more_w: float) -> None:
    richer = Demand(
        load=demand.load, limit_w=demand.limit_w + more_w, locked_mhz=demand.locked_mhz, braked=demand.braked
    )
    poor, rich = working_point(card(), demand), working_point(card(), richer)
    assert rich.clock_mhz >= poor.clock_mhz
    assert rich.share >= poor.share


@given(clock=st.floats(0.0, 1.0))
def test_clock_and_power_belong_together(clock: float) -> None:
    assert relative_clock(relative_power(clock)) == pytest.approx(clock, abs=1e-9)
    assert 0.0 <= relative_power(clock) <= 1.0
