"""What the vendor's modes do to a simulated Jetson's speed and power."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import pytest

from jetsons import CPU_RAIL, IDS, JETSONS
from powerlab.boards.board import VendorMode
from powerlab.boards.registry import find_board
from powerlab.boards.simulator import create_tree, layout
from powerlab.boards.simulator.nvpmodel_conf import render_conf
from powerlab.boards.simulator.physics import PowerModel, Work, components_w, inference_s, rails_w
from powerlab.boards.simulator.start import modes_of, start_settings
from powerlab.boards.simulator.state import Settings
from powerlab.modes.knobs.nvpmodel.conf import parse_conf
from powerlab.sysroot import Sysroot

EVERY = pytest.mark.parametrize(("name", "jetpack"), JETSONS, ids=IDS)
FULL = 64


@dataclass(frozen=True)
class Figures:
    """What a mode gives: work a second relative to one core at full clock, and W."""

    rate: float
    total_w: float
    cpu_w: float


def settings_in(name: str, jetpack: int, mode: VendorMode) -> Settings:
    """The board as it would boot in a mode, also in one that needs a reboot."""
    board, simulation = find_board(name), dict(layout.simulation_of(name))
    simulation["nvpmodel"] = {**simulation["nvpmodel"], "start_mode": mode.id}
    return start_settings(board, simulation, jetpack)


def figures(name: str, settings: Settings, threads: int) -> Figures:
    simulation = layout.simulation_of(name)
    model, state = PowerModel.from_document(simulation), settings.state(threads)
    components = components_w(model, state)
    rails = rails_w(simulation["rails"], components)
    rate = 1 / inference_s(model, state, Work(1e9, 1e8))
    return Figures(rate, sum(components.values()), rails[CPU_RAIL[name]])


def is_smaller(mode: VendorMode, other: VendorMode) -> bool:
    """Whether a mode allows nothing more than another: no core, no clock."""

    def allows(one: VendorMode) -> tuple[float, ...]:
        caps = (one.cpu_khz, one.gpu_hz, one.emc_hz)
        return (one.cores, *(cap if cap > 0 else float("inf") for cap in caps))

    return all(ours <= theirs for ours, theirs in zip(allows(mode), allows(other), strict=True))


@EVERY
@pytest.mark.parametrize("threads", [2, FULL])
def test_a_mode_that_allows_less_is_no_faster_and_draws_no_more(name: str, jetpack: int, threads: int) -> None:
    modes = modes_of(find_board(name), jetpack)
    found = {mode: figures(name, settings_in(name, jetpack, mode), threads) for mode in modes}
    compared = 0
    for mode, other in permutations(modes, 2):
        if is_smaller(mode, other) and not is_smaller(other, mode):
            compared += 1
            assert found[mode].rate <= found[other].rate + 1e-12, (mode.name, other.name)
            assert found[mode].total_w <= found[other].total_w + 1e-12, (mode.name, other.name)
            assert found[mode].cpu_w <= found[other].cpu_w + 1e-12, (mode.name, other.name)
    assert compared


@EVERY
def test_no_mode_goes_far_beyond_the_watts_in_its_name(name: str, jetpack: int) -> None:
    """The names promise a budget of the module; a load of the CPU alone stays within it."""
    for mode in modes_of(find_board(name), jetpack):
        digits = "".join(character for character in mode.name.partition("W")[0] if character.isdigit())
        if digits and "W" in mode.name and not mode.name.startswith("MAX"):
            settings = settings_in(name, jetpack, mode)
            assert figures(name, settings, FULL).total_w <= 1.1 * int(digits), mode.name


@EVERY
def test_an_idle_board_draws_less_than_a_busy_one_in_every_mode(name: str, jetpack: int) -> None:
    for mode in modes_of(find_board(name), jetpack):
        settings = settings_in(name, jetpack, mode)
        watts = [
            sum(components_w(PowerModel.from_document(layout.simulation_of(name)), settings.state(threads)).values())
            for threads in (0, 1, 2)
        ]
        assert watts[0] < watts[1]
        assert watts[1] < watts[2]


def test_the_bigger_mode_can_be_the_slower_one() -> None:
    modes = {mode.name: mode for mode in modes_of(find_board("jetson-orin-nano"), 6)}
    rates = {
        mode: figures("jetson-orin-nano", settings_in("jetson-orin-nano", 6, modes[mode]), 1).rate
        for mode in ("15W", "25W", "MAXN_SUPER")
    }
    assert rates["25W"] < rates["15W"] < rates["MAXN_SUPER"]


@EVERY
def test_the_table_reads_back_as_the_published_modes(name: str, jetpack: int, tmp_path: Path) -> None:
    simulation = layout.simulation_of(name)
    modes = modes_of(find_board(name), jetpack)
    conf = parse_conf(render_conf(simulation, modes, modes[0].id, layout.variant_of(jetpack)))
    create_tree(name, tmp_path / "tree", jetpack)
    assert parse_conf(Sysroot(tmp_path / "tree").read("/etc/nvpmodel.conf")).models == conf.models
    fixed = len(simulation["cpu"].get("fixed_cores", ()))
    for mode, model in zip(modes, conf.models, strict=True):
        online = [value for (parameter, _), value in model.values.items() if parameter == "CPU_ONLINE"]
        assert online.count("1") + fixed == mode.cores
        assert model.values["GPU", "MAX_FREQ"] == str(mode.gpu_hz)
        assert model.values["EMC", "MAX_FREQ"] == str(mode.emc_hz)
