from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from powerlab.cli import main
from powerlab.modes.controller import ModeController
from powerlab.modes.registry import KNOBS
from powerlab.modes.undo.journal import Journal
from powerlab.state_dir import state_dir as where_state_lies
from powerlab.sysroot import Sysroot


@pytest.fixture(autouse=True)
def _state(state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(state_dir))


def test_the_list_says_what_can_be_set_and_why_something_cannot(
    board: Sysroot, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["modes", "--sysroot", str(board.base)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("current: the current settings, unchanged")
    assert "nvpmodel: the power modes NVIDIA defines for this board (in MAXN; 8 modes" in out
    assert "MODE_15W 4 cores, CPU up to 1200 MHz" in out
    assert "MODE_10W 2 cores" in out
    assert "needs a reboot: `sudo nvpmodel -m 1`, say yes, then sweep the mode `current`" in out
    assert out.index("cores=4 4 cores online (0 to 3)") < out.index("cores=N the first N cores") < out.index("cpufreq:")
    assert "cannot be turned here platform_profile: absent; the firmware offers no profiles" in out


def test_the_owners_own_modes_have_a_group_of_their_own(board: Sysroot, capsys: pytest.CaptureFixture[str]) -> None:
    board.path("/etc/powerlab").mkdir()
    board.path("/etc/powerlab/modes.toml").write_text('[modes]\nquiet = "cores=2+governor=powersave"\n')
    assert main(["modes", "--sysroot", str(board.base)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "named in /etc/powerlab/modes.toml quiet cores=2+governor=powersave: 2 cores online" in out
    assert out.count("quiet") == 1


def test_a_line_of_the_owners_that_cannot_be_used_is_told_and_hides_nothing(
    board: Sysroot, capsys: pytest.CaptureFixture[str]
) -> None:
    board.path("/etc/powerlab").mkdir()
    board.path("/etc/powerlab/modes.toml").write_text('[modes]\nquiet = "quiet"\ncalm = "cores=2"\n')
    for command in (["modes"], ["doctor", "--all"]):
        assert main([*command, "--sysroot", str(board.base)]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert "fix /etc/powerlab/modes.toml: it says quiet = 'quiet', which this device cannot do" in out
        assert "MODE_15W" in out
        assert "calm" in out
    assert main(["modes", "--json", "--sysroot", str(board.base)]) == 0
    assert len(json.loads(capsys.readouterr().out)["own_problems"]) == 1


def test_the_list_has_no_blanks_at_the_ends_of_lines(board: Sysroot, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["modes", "--sysroot", str(board.base)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line != line.rstrip()] == []


def test_a_mode_is_shown_with_what_it_sets(board: Sysroot, capsys: pytest.CaptureFixture[str]) -> None:
    name, sysroot = "cores=2+cpu-max=1200000kHz", ["--sysroot", str(board.base)]
    assert main(["modes", "show", name, *sysroot]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{name}: 2 cores online (0 to 1)")
    assert "  hotplug cpu7 = 0" in lines
    assert "  cpufreq policy6.max_khz = 1190400" in lines
    assert board.read("/sys/devices/system/cpu/cpu7/online") == "1", "it is only shown"
    assert main(["modes", "show", name, "--json", *sysroot]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["online_cores"] == 2
    assert {"knob": "cpufreq", "target": "policy0.max_khz", "value": "1190400"} in document["settings"]


def test_a_mode_that_needs_a_reboot_is_shown_with_the_way_there(
    board: Sysroot, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["modes", "show", "MODE_10W", "--sysroot", str(board.base)]) == 0
    assert "Needs a reboot: `sudo nvpmodel -m 1`" in capsys.readouterr().out


def test_several_parts_are_set_at_once_and_taken_back(board: Sysroot, capsys: pytest.CaptureFixture[str]) -> None:
    sysroot = ["--sysroot", str(board.base)]
    assert main(["modes", "set", "cores=3+governor=performance+gpu-max=522750000Hz", *sysroot]) == 0
    assert f"is set; `powerlab modes restore --sysroot {board.base}` goes back" in capsys.readouterr().out
    assert board.read("/sys/devices/system/cpu/cpu3/online") == "0"
    assert board.read("/sys/class/devfreq/17000000.gv11b/max_freq") == "522750000"
    assert main(["modes", "restore", *sysroot]) == 0
    assert board.read("/sys/devices/system/cpu/cpu3/online") == "1"
    assert board.read("/sys/class/devfreq/17000000.gv11b/max_freq") == "1377000000"


def test_the_json_has_modes_knobs_and_changes(board: Sysroot, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["modes", "--json", "--sysroot", str(board.base)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["modes"][0]["name"] == "current"
    knobs = {knob["knob"]: knob for knob in document["knobs"]}
    assert list(knobs) == [knob.name for knob in KNOBS]
    assert knobs["hotplug"]["availability"] == "available"
    assert knobs["hotplug"]["meaning"] == "how many CPU cores are online"
    assert [form["name"] for form in knobs["cpufreq"]["forms"]] == [
        "governor=X", "cpu-max=NkHz", "cpu-min=NkHz", "epp=X"
    ]  # fmt: skip
    assert document["persistent"] is None
    assert document["unrestored"] is None


def test_a_mode_is_set_shown_and_taken_back(board: Sysroot, capsys: pytest.CaptureFixture[str]) -> None:
    sysroot = ["--sysroot", str(board.base)]
    assert main(["modes", "set", "MODE_15W", *sysroot]) == 0
    assert "MODE_15W is set" in capsys.readouterr().out
    assert board.read("/var/lib/nvpmodel/status") == "pmode:0002"
    assert list(board.path("/var/lib/powerlab").rglob("undo.json")) != []
    assert main(["modes", *sysroot]) == 0
    assert "MODE_15W is set until it is restored" in capsys.readouterr().out
    assert main(["modes", "restore", "--json", *sysroot]) == 0
    assert {"knob": "nvpmodel", "target": "mode", "value": "0"} in json.loads(capsys.readouterr().out)
    assert board.read("/var/lib/nvpmodel/status") == "pmode:0000"
    assert main(["modes", "restore", *sysroot]) == 0
    assert "nothing to put back" in capsys.readouterr().out


def test_a_mode_set_to_stay_is_not_what_a_killed_process_left(
    board: Sysroot, capsys: pytest.CaptureFixture[str]
) -> None:
    sysroot = ["--sysroot", str(board.base)]
    assert main(["modes", "set", "MODE_15W", *sysroot]) == 0
    capsys.readouterr()
    assert main(["modes", "restore", "--if-killed", *sysroot]) == 0
    assert "nothing to put back" in capsys.readouterr().out
    assert board.read("/var/lib/nvpmodel/status") == "pmode:0002"
    controller = ModeController(board, where_state_lies(board))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ModeController, "_change", lambda *_: signal.raise_signal(signal.SIGINT))
        patch.setattr(Journal, "remove", lambda _: None)  # as if it had been killed before that
        with pytest.raises(KeyboardInterrupt):
            controller.set("governor=powersave")
    assert main(["modes", "restore", "--if-killed", *sysroot]) == 0
    assert "settings put back" in capsys.readouterr().out
    assert board.read("/var/lib/nvpmodel/status") == "pmode:0002"


def test_the_state_directory_can_be_given(board: Sysroot, tmp_path: Path, state_dir: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    arguments = ["modes", "set", "governor=powersave", "--sysroot", str(board.base), "--state-dir", str(elsewhere)]
    assert main(arguments) == 0
    assert list(elsewhere.rglob("undo.json")) != []
    assert not state_dir.exists()


def test_the_journal_lies_with_the_board_or_in_the_users_state(
    board: Sysroot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path / "chosen"))
    assert where_state_lies() == where_state_lies(Sysroot()) == tmp_path / "chosen"
    assert where_state_lies(board) == board.path("/var/lib/powerlab")
    monkeypatch.delenv("POWERLAB_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert where_state_lies() == tmp_path / "powerlab"
    assert where_state_lies(board) == board.path("/var/lib/powerlab")


def test_what_a_killed_sweep_of_a_simulated_board_left_is_found(
    board: Sysroot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("POWERLAB_STATE_DIR")
    killed = ModeController(board, board.path("/var/lib/powerlab"))
    monkeypatch.setattr(killed._board, "restore", lambda previous, touched: ())
    monkeypatch.setattr(killed._journal, "remove", lambda: None)
    with killed.applied("MODE_15W"):
        pass
    sysroot = ["--sysroot", str(board.base)]
    assert main(["modes", *sysroot]) == 0
    assert f"process {os.getpid()} set MODE_15W and has not restored the previous settings" in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(["modes", "restore", *sysroot]) == 0
    assert "nvpmodel mode = 0" in capsys.readouterr().out
    assert board.read("/var/lib/nvpmodel/status") == "pmode:0000"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["set", "TURBO"], "no power mode 'TURBO'"),
        (["set", "MODE_10W"], "after a reboot"),
        (["set", "current"], "nothing to set"),
        (["show", "TURBO"], "no power mode 'TURBO'"),
        (["set", "cores=99"], "choose from 1 to 8 cores"),
        (["set", "cpu-max=1.2GHz"], "write it like cpu-max=1190400kHz"),
        (["set", "cores=2+cores=3"], "both to"),
    ],
)
def test_what_cannot_be_set_is_one_sentence_and_exit_code_2(
    board: Sysroot, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert main(["modes", *arguments, "--sysroot", str(board.base)]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert len(err.splitlines()) == 1


def test_a_sysroot_that_is_no_directory_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["modes", "--sysroot", str(tmp_path / "nothing")]) == 2
    assert "is not a directory" in capsys.readouterr().err
