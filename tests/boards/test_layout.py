from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.boards.registry import find_board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.parts.files import SensorFiles
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot


@pytest.mark.parametrize(
    ("name", "asked", "taken"),
    [
        ("jetson-agx-xavier", None, 4),
        ("jetson-agx-xavier", 5, 5),
        ("jetson-orin-nano", None, 6),
        ("jetson-nano", 4, 4),
        ("intel-xeon", None, None),
    ],
)
def test_a_boards_first_jetpack_is_taken_unasked(name: str, asked: int | None, taken: int | None) -> None:
    assert layout.choose_jetpack(find_board(name), asked) == taken


@pytest.mark.parametrize(
    ("name", "asked", "says"),
    [
        ("jetson-agx-xavier", 6, "choose 4 or 5"),
        ("jetson-nano", 5, "choose 4"),
        ("intel-xeon", 5, "leave --jetpack out: this board has none"),
    ],
)
def test_a_jetpack_the_board_never_had_is_refused(name: str, asked: int, says: str) -> None:
    with pytest.raises(PowerlabError, match=says):
        layout.choose_jetpack(find_board(name), asked)


def test_a_value_may_differ_between_variants() -> None:
    assert layout.variant_of(5) == "jetpack5"
    assert layout.variant_of(None) == ""
    assert layout.variant_value({"jetpack4": "a", "jetpack5": "b"}, "jetpack5") == "b"
    assert layout.variant_value("both", "jetpack5") == "both"
    assert layout.variant_value({"GPU": 1}, "jetpack5") == {"GPU": 1}, "a table of something else"


def test_a_file_is_only_rewritten_when_its_text_changes(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("one\n")
    sysroot = Sysroot(tmp_path)
    (tmp_path / "file").chmod(0o444)
    stamp = (tmp_path / "file").stat().st_mtime_ns
    layout.put(sysroot, "/file", "one")
    assert (tmp_path / "file").stat().st_mtime_ns == stamp
    (tmp_path / "file").chmod(0o644)
    layout.put(sysroot, "/file", "another")
    assert layout.line_of(sysroot, "/file") == "another"


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    for action in (lambda: layout.line_of(Sysroot(tmp_path), "/no"), lambda: layout.put(Sysroot(tmp_path), "/no", "x")):
        with pytest.raises(FileNotFoundError):
            action()


@given(st.integers(-(10**6), 10**7), st.integers(8, 24))
def test_a_reading_has_a_constant_width_and_gives_back_its_value(value: int, width: int) -> None:
    text = layout.sensor_text(value, width)
    assert len(text) == width + 1
    assert int(text) == value


def test_sensor_files_are_rewritten_in_place_and_only_while_open(tmp_path: Path) -> None:
    (tmp_path / "power").write_text(f"{0:<20d}\n")
    inode = (tmp_path / "power").stat().st_ino
    files = SensorFiles(width=20)
    files.open(Sysroot(tmp_path), ["/power"])
    for value in (0, 12345678901234, 7):
        files.write("/power", value)
        assert (tmp_path / "power").read_text() == f"{value:<20d}\n"
    files.close()
    files.close()
    assert (tmp_path / "power").stat().st_ino == inode
    with pytest.raises(KeyError):
        files.write("/power", 1)


def test_a_sensor_file_that_is_missing_is_told_when_it_is_opened(tmp_path: Path) -> None:
    files = SensorFiles()
    with pytest.raises(FileNotFoundError):
        files.open(Sysroot(tmp_path), ["/no"])
    files.close()
