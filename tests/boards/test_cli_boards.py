from __future__ import annotations

import json
from pathlib import Path

import pytest

from powerlab.boards.registry import BOARDS
from powerlab.cli import main
from powerlab.sysroot import Sysroot


def test_the_list_names_every_board_and_what_its_power_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boards"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert all(name in out for name in BOARDS)
    assert "jetson-agx-xavier 8 GPU + CPU + SOC + CV + VDDRQ + SYS5V yes" in out
    assert "generic - probed -" in out


def test_the_json_holds_every_board(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boards", "--json"]) == 0
    documents = json.loads(capsys.readouterr().out)
    assert [document["name"] for document in documents] == list(BOARDS)
    assert main(["boards", "show", "jetson-nano", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["total"]["rails"] == ["ina3221:POM_5V_IN"]


def test_a_board_is_shown_with_rails_modes_and_what_its_total_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boards", "show", "jetson-agx-xavier"]) == 0
    out = capsys.readouterr().out
    assert "module rails, without the carrier board" in out
    assert "MODE_10W: 2 cores, 1200 MHz, needs a reboot (published)" in out
    assert "MAXN: 8 cores, no CPU cap (published)" in out


def test_a_board_with_several_jetpacks_says_which_modes_and_simulators_it_has(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["boards", "show", "jetson-orin-nano"]) == 0
    out = capsys.readouterr().out
    assert "simulator   yes, as JetPack 6 or 5" in out
    assert "25W: 6 cores, 1344 MHz, JetPack 6 only (published)" in out
    assert "7W: 4 cores, 960 MHz, needs a reboot, JetPack 5 only (published)" in out


def test_an_unused_channel_and_the_shunts_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boards", "show", "jetson-agx-orin"]) == 0
    assert "1-0041: (unused), VDDQ_VDD2_1V8AO, (unused), shunts 2000 µΩ" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(BOARDS))
def test_every_board_can_be_shown(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boards", "show", name]) == 0
    assert BOARDS[name].title in capsys.readouterr().out


def test_a_tree_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["boards", "simulate", "jetson-agx-xavier", str(tmp_path / "b"), "--jetpack", "5"]
    assert main(arguments) == 0
    assert f"--sysroot {tmp_path / 'b'}" in capsys.readouterr().out
    assert Sysroot(tmp_path / "b").glob("/sys/class/hwmon/hwmon*/name") != []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["show", "nothing"], "there is no board named 'nothing'"),
        (["simulate", "nothing", "x"], "there is no board named 'nothing'"),
        (["simulate", "generic", "x"], "has no simulator"),
        (["simulate", "jetson-tx2", "x", "--jetpack", "5"], "choose 4"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert main(["boards", *arguments]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert len(err.splitlines()) == 1
