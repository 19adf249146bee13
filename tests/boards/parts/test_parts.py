"""What holds for every part of every board that can be simulated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from powerlab.boards.registry import BOARDS, board_document
from powerlab.boards.simulator import create_tree, layout
from powerlab.boards.simulator.loop import Simulator
from powerlab.boards.simulator.parts.base import Part
from powerlab.boards.simulator.parts.registry import PARTS, parts_of
from powerlab.boards.simulator.physics import PowerModel, components_w, rails_w
from powerlab.boards.simulator.start import start_settings
from powerlab.boards.simulator.state import read_settings
from powerlab.sysroot import Sysroot

NO_PARTS = {"power", "rails", "files"}
SIMULATED = [
    (board.name, jetpack) for board in BOARDS.values() if board.simulatable for jetpack in board.jetpacks or (None,)
]
IDS = [name if jetpack is None else f"{name}@{jetpack}" for name, jetpack in SIMULATED]
EVERY = pytest.mark.parametrize(("name", "jetpack"), SIMULATED, ids=IDS)


def parts(name: str, jetpack: int | None) -> list[Part]:
    return parts_of(BOARDS[name], layout.simulation_of(name), layout.variant_of(jetpack))


@pytest.fixture
def tree(name: str, jetpack: int | None, tmp_path: Path) -> Sysroot:
    create_tree(name, tmp_path / "tree", jetpack)
    return Sysroot(tmp_path / "tree")


@EVERY
def test_every_table_of_a_simulation_is_a_part(name: str, jetpack: int | None) -> None:
    tables = {key for key, value in board_document(name)["simulation"].items() if isinstance(value, dict)}
    variants = {layout.variant_of(jetpack) for jetpack in BOARDS[name].jetpacks}
    unknown = {
        key for key in tables - set(PARTS) - NO_PARTS if not variants & set(board_document(name)["simulation"][key])
    }
    assert unknown == set()
    assert len(parts(name, jetpack)) == len(tables & set(PARTS))


@EVERY
def test_no_two_parts_write_the_same_path(name: str, jetpack: int | None) -> None:
    simulation = layout.simulation_of(name)
    state = start_settings(BOARDS[name], simulation, jetpack).state(0)
    idle_w = rails_w(simulation["rails"], components_w(PowerModel.from_document(simulation), state))
    paths: list[str] = []
    for part in parts(name, jetpack):
        for entries in (part.files(idle_w), part.links(), part.programs(), part.copies()):
            paths += [path for path, _ in entries]
    assert sorted(set(paths)) == sorted(paths)
    assert all(path.startswith("/") for path in paths)


@EVERY
def test_the_tree_holds_what_the_board_booted_with(name: str, jetpack: int | None, tree: Sysroot) -> None:
    simulation = layout.simulation_of(name)
    found, expected = read_settings(tree, simulation), start_settings(BOARDS[name], simulation, jetpack)
    if "gpu_devfreq" not in simulation:  # then nobody's clock limit stands behind the share
        found, expected = replace(found, gpu_share=()), replace(expected, gpu_share=())
    assert found == expected


@EVERY
def test_every_rail_is_made_of_components_the_board_has(name: str, jetpack: int | None) -> None:
    simulation = layout.simulation_of(name)
    state = start_settings(BOARDS[name], simulation, jetpack).state(1)
    components = components_w(PowerModel.from_document(simulation), state)
    for rail, made_of in simulation["rails"].items():
        assert set(made_of) <= set(components), rail
        assert all(weight > 0.0 for weight in made_of.values()), rail


@EVERY
def test_ticking_and_closing_leaves_every_sensor_with_a_value(name: str, jetpack: int | None, tree: Sysroot) -> None:
    simulator = Simulator(tree)
    for tick in range(12):
        simulator.tick(1_000_000_000 + tick * 10_000_000)
    simulator.close()
    texts = {path: path.read_text() for path in tree.base.rglob("*_input") if path.is_file()}
    assert all(text.strip() for text in texts.values())


@EVERY
def test_the_same_seed_gives_the_same_tree_after_the_same_ticks(name: str, jetpack: int | None, tmp_path: Path) -> None:
    found = []
    for place in ("one", "two"):
        create_tree(name, tmp_path / place, jetpack)
        simulator = Simulator(Sysroot(tmp_path / place), seed=5)
        for tick in range(30):
            simulator.tick(1_000_000_000 + tick * 10_000_000)
        simulator.close()
        root = tmp_path / place
        found.append({str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()})
    assert found[0] == found[1]


@EVERY
def test_a_missing_file_of_a_tree_is_told_when_it_is_opened(name: str, jetpack: int | None, tree: Sysroot) -> None:
    (path,) = tree.glob("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor")
    tree.path(path).unlink()
    with pytest.raises(OSError, match="scaling_governor"):
        Simulator(tree)


def test_a_part_that_overrides_nothing_has_nothing_and_does_nothing(tmp_path: Path) -> None:
    part = Part(BOARDS["generic"], {}, "")
    assert part.jetpack is None
    assert [*part.files({}), *part.links(), *part.programs(), *part.copies()] == []
    part.open(Sysroot(tmp_path))
    assert part.caps() == {}
    part.close()
    assert list(tmp_path.iterdir()) == []
