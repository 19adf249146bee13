"""``powerlab boards fault`` and ``powerlab boards simulate --fault``."""

from __future__ import annotations

from pathlib import Path

import pytest

from powerlab.boards.simulator import create_tree
from powerlab.boards.simulator.faults.control import active
from powerlab.boards.simulator.faults.registry import FAULTS
from powerlab.cli import EXIT_OK, EXIT_USAGE, main
from powerlab.sysroot import Sysroot

XAVIER = "jetson-agx-xavier"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    create_tree(XAVIER, tmp_path / "board")
    return tmp_path / "board"


def refused(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert main([*map(str, words)]) == EXIT_USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_a_fault_is_set_and_cleared(tree, capsys):
    assert main(["boards", "fault", str(tree), "stale"]) == EXIT_OK
    assert "injected stale on" in capsys.readouterr().out
    assert active(Sysroot(tree)) == ("stale",)
    assert main(["boards", "fault", str(tree), "stale", "--clear"]) == EXIT_OK
    assert "cleared stale on" in capsys.readouterr().out
    assert active(Sysroot(tree)) == ()


def test_the_list_shows_what_the_board_can_have_and_what_is_in_force(tree, capsys):
    main(["boards", "fault", str(tree), "nc-rail"])
    capsys.readouterr()
    assert main(["boards", "fault", str(tree)]) == EXIT_OK
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["nc-rail"].split()[-1] == "yes"
    assert lines["stale"].split()[-1] == "-"
    assert FAULTS["stale"].summary in lines["stale"]
    assert "counter-wrap" not in lines


def test_a_board_is_written_with_faults(tmp_path, capsys):
    words = ["boards", "simulate", XAVIER, str(tmp_path / "new"), "--fault", "stale", "--fault", "clock-jump"]
    assert main(words) == EXIT_OK
    assert "wrote a simulated" in capsys.readouterr().out
    assert active(Sysroot(tmp_path / "new")) == ("stale", "clock-jump")


def test_nothing_is_written_for_a_fault_the_board_cannot_have(tmp_path, capsys):
    sentence = refused(capsys, "boards", "simulate", XAVIER, tmp_path / "new", "--fault", "counter-wrap")
    assert "no energy counter that wraps" in sentence
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("nonsense",), "choose one of"),
        (("over-current",), "no over-current protection"),
        (("--clear",), "needs the name of a fault"),
    ],
)
def test_bad_requests_are_one_sentence(tree, capsys, words, part):
    assert part in refused(capsys, "boards", "fault", tree, *words)


@pytest.mark.parametrize("words", [(), ("stale",), ("stale", "--clear")])
def test_a_directory_that_is_no_board_is_refused(tmp_path, capsys, words):
    assert "is not a simulated board" in refused(capsys, "boards", "fault", tmp_path, *words)
