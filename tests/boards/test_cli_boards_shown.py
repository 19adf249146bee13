"""What `powerlab boards show` prints agrees with the board it shows, for every board."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from powerlab.boards.registry import BOARDS
from powerlab.cli import EXIT_OK, main


@pytest.fixture(params=sorted(BOARDS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_what_is_shown_is_what_is_known(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    board = BOARDS[name]
    assert main(["boards", "show", name]) == EXIT_OK
    text = capsys.readouterr().out
    assert board.title in text
    assert (str(board.core_count) if board.core_count else "depends on the variant") in text
    if board.total is not None:
        assert " + ".join(rail.partition(":")[2] for rail in board.total.rails) in text
        assert " ".join(board.total.scope.split()) in " ".join(text.split())


def test_a_board_without_a_total_does_not_claim_watts(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    board = BOARDS[name]
    main(["boards", "show", name])
    text = capsys.readouterr().out
    assert "None" not in text
    assert "{" not in text
    if board.total is not None:
        assert len(set(board.total.rails)) == len(board.total.rails)


def test_every_published_mode_is_shown_with_its_cores_and_said_to_be_published(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["boards", "show", name])
    lines = capsys.readouterr().out.splitlines()
    modes = [line for line in lines if line.startswith("  mode ")]
    assert len(modes) == len(BOARDS[name].vendor_modes)
    for line, mode in zip(modes, BOARDS[name].vendor_modes, strict=True):
        assert f"{mode.name}: {mode.cores} cores" in line
        assert ("needs a reboot" in line) == mode.requires_reboot
        assert line.endswith("(published)")


def test_the_list_and_the_json_name_the_same_boards(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boards", "--json"]) == EXIT_OK
    listed = json.loads(capsys.readouterr().out)
    assert main(["boards"]) == EXIT_OK
    table = capsys.readouterr().out
    assert [entry["name"] for entry in listed] == list(BOARDS)
    for entry in listed:
        assert entry["name"] in table
        assert entry == json.loads(json.dumps(asdict(BOARDS[entry["name"]])))
