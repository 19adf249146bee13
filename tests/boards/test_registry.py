from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from powerlab.boards import registry
from powerlab.boards.registry import BOARDS, detect, find_board, parse_board
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot


def machine(tmp_path: Path, compatible: str | None = None, model: str | None = None) -> Sysroot:
    node = tmp_path / "proc/device-tree"
    node.mkdir(parents=True, exist_ok=True)
    for name, text in (("compatible", compatible), ("model", model)):
        if text is not None:
            (node / name).write_text(text)
    return Sysroot(tmp_path)


def test_the_boards_are_there() -> None:
    assert set(BOARDS) >= {
        "generic",
        "jetson-agx-xavier",
        "jetson-agx-orin",
        "jetson-orin-nano",
        "jetson-orin-nx",
        "jetson-xavier-nx",
        "jetson-nano",
        "jetson-tx2",
    }


@pytest.mark.parametrize("name", sorted(name for name, board in BOARDS.items() if board.chips))
def test_a_total_adds_rails_of_the_boards_own_chips_and_says_what_it_covers(name: str) -> None:
    board = BOARDS[name]
    assert board.total is not None
    channels = {f"ina3221:{channel}" for chip in board.chips for channel in chip.channels if channel}
    assert set(board.total.rails) <= channels
    assert "without the carrier board" in board.total.scope
    assert not board.total.proposed


def test_no_rail_is_counted_twice_where_an_input_rail_exists() -> None:
    for board in BOARDS.values():
        if board.total and any(rail.endswith((":VDD_IN", ":POM_5V_IN")) for rail in board.total.rails):
            assert len(board.total.rails) == 1, "the input rail already holds all others"


def test_the_xavier_is_what_its_maker_published() -> None:
    board = find_board("jetson-agx-xavier")
    assert board.core_count == 8
    assert board.total is not None
    assert board.total.rails == tuple(f"ina3221:{rail}" for rail in ("GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"))
    assert board.total.scope == "module rails, without the carrier board"
    assert [(mode.id, mode.name, mode.cores, mode.cpu_khz) for mode in board.vendor_modes] == [
        (0, "MAXN", 8, -1),
        (1, "MODE_10W", 2, 1200000),
        (2, "MODE_15W", 4, 1200000),
        (3, "MODE_30W_ALL", 8, 1200000),
        (4, "MODE_30W_6CORE", 6, 1450000),
        (5, "MODE_30W_4CORE", 4, 1780000),
        (6, "MODE_30W_2CORE", 2, 2100000),
        (7, "MODE_15W_DESKTOP", 4, 2188800),
    ]
    assert [mode.name for mode in board.vendor_modes if mode.requires_reboot] == ["MODE_10W"]


def test_nothing_identifies_two_boards() -> None:
    for attribute in ("compatible", "models"):
        found = [text for board in BOARDS.values() for text in getattr(board, attribute)]
        assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("compatible", "name"),
    [
        ("nvidia,p2972-0000\0nvidia,tegra194\0", "jetson-agx-xavier"),
        ("nvidia,p3768-0000+p3767-0005-super\0nvidia,p3767-0005\0nvidia,tegra234\0", "jetson-orin-nano"),
        ("nvidia,p3768-0000+p3767-0000\0nvidia,p3767-0000\0nvidia,tegra234\0", "jetson-orin-nx"),
        ("nvidia,p3737-0000+p3701-0000\0nvidia,p3701-0000\0nvidia,tegra234\0", "jetson-agx-orin"),
        ("lenovo,thinkedge-se70\0nvidia,p3668-0001\0nvidia,tegra194\0", "jetson-xavier-nx"),
        ("nvidia,p3450-0000\0nvidia,jetson-nano\0nvidia,tegra210\0", "jetson-nano"),
        ("nvidia,quill\0nvidia,tegra186\0", "jetson-tx2"),
        ("nvidia,tegra194\0", "generic"),
        ("raspberrypi,5-model-b\0brcm,bcm2712\0", "generic"),
        ("", "generic"),
    ],
)
def test_a_board_is_known_by_its_device_tree(tmp_path: Path, compatible: str, name: str) -> None:
    assert detect(machine(tmp_path, compatible=compatible)).name == name


def test_the_model_decides_where_compatible_says_nothing(tmp_path: Path) -> None:
    assert detect(machine(tmp_path, "nvidia,tegra194\0", "Jetson-AGX\0")).name == "jetson-agx-xavier"


def test_a_host_without_a_device_tree_is_generic(tmp_path: Path) -> None:
    found = detect(Sysroot(tmp_path))
    assert (found.name, found.total, found.core_count) == ("generic", None, None)


@pytest.mark.parametrize("name", ["nothing", "", "../registry", "data/generic"])
def test_an_unknown_board_is_refused_in_words(name: str) -> None:
    with pytest.raises(PowerlabError, match="`powerlab boards` lists"):
        find_board(name)


def test_a_new_board_is_one_file() -> None:
    board = parse_board("mine", tomllib.loads('title = "Mine"\ncompatible = ["me,mine"]\ncore_count = 3\n'))
    assert (board.name, board.title, board.compatible, board.core_count) == ("mine", "Mine", ("me,mine",), 3)
    assert not board.simulatable


@pytest.mark.parametrize("text", ["", 'title = "x"\ncolour = "red"', '[[chips]]\naddress = "1-0040"'])
def test_a_slip_in_a_board_file_does_not_pass(text: str) -> None:
    with pytest.raises((TypeError, KeyError)):
        parse_board("mine", tomllib.loads(text))


def test_the_files_are_package_data() -> None:
    """A wheel must hold them: they are read as resources of the package, and no rule leaves them out of it."""
    data = Path(registry.__file__).parent / "data"
    assert {file.stem for file in data.glob("*.toml")} == set(BOARDS)
