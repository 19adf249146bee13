"""Every board has a page, and the page says what the board's data says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from powerlab.boards.board import Board
from powerlab.boards.registry import BOARDS

SECTIONS = ["Install", "Rails", "Total", "Modes", "Privileges", "Pitfalls"]
MOST_LINES = 140


def page_of(root: Path, board: Board) -> str:
    return (root / "docs" / "boards" / f"{board.name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("board", BOARDS.values(), ids=list(BOARDS))
def test_a_page_has_its_sections_in_order(root: Path, board: Board) -> None:
    page = page_of(root, board)
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == SECTIONS
    assert len(page.splitlines()) <= MOST_LINES


@pytest.mark.parametrize("board", BOARDS.values(), ids=list(BOARDS))
def test_a_page_names_the_rails_and_modes_of_its_board(root: Path, board: Board) -> None:
    page = page_of(root, board)
    keys = [
        *(board.total.rails if board.total else ()),
        *(f":{name}" for chip in board.chips for name in chip.channels),
    ]
    names = [key.partition(":")[2].rstrip("*").rstrip() for key in keys]
    names += [mode.name for mode in board.vendor_modes]
    assert [name for name in names if name and name not in page] == []


@pytest.mark.parametrize("board", BOARDS.values(), ids=list(BOARDS))
def test_the_index_leads_to_the_page(root: Path, board: Board) -> None:
    index = (root / "docs" / "boards.md").read_text(encoding="utf-8")
    assert f"[`{board.name}`](boards/{board.name}.md)" in index


def test_no_page_is_left_over(root: Path) -> None:
    assert {path.stem for path in (root / "docs" / "boards").glob("*.md")} == set(BOARDS)
