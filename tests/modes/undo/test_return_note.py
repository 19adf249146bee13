"""A device that was rebooted into a mode: the note names the original mode, and there its settings are restored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from powerlab.boards.simulator.reboot import reboot, reboot_requested
from powerlab.boards.simulator.tree import create_tree
from powerlab.cli import main
from powerlab.domain.errors import PowerlabError
from powerlab.modes.controller import ModeController
from powerlab.modes.reboot.return_note import ReturnNote
from powerlab.modes.reboot.transition import Rebooting, check_can_go
from powerlab.sysroot import Sysroot

GOVERNOR = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"
STATUS = "/var/lib/nvpmodel/status"
AWAY = "rebooted into MODE_10W for a sweep and is not back in MAXN"


class Device:
    """A simulated Xavier whose owner has chosen a governor, as an agent takes it away and a user brings it back."""

    def __init__(self, tree: Path) -> None:
        create_tree("jetson-agx-xavier", tree)
        self.sysroot, self.state = Sysroot(tree), tree / "var/lib/powerlab"
        self.sysroot.path(GOVERNOR).write_text("ondemand\n")
        self.return_note = ReturnNote(self.sysroot, self.state)

    def goes_away(self) -> None:
        device = Rebooting(self.sysroot, self.state)
        target = ModeController(self.sysroot, self.state).reboot_target("MODE_10W")
        self.return_note.keep(check_can_go(device, target), device.settings(), target)
        device.ask(target)
        reboot(self.sysroot)

    def is_sent_home(self) -> None:
        self.sysroot.path(STATUS).write_text("pmode:0000\n")
        reboot(self.sysroot)

    def modes(self, *words: str) -> int:
        return main(["modes", *words, "--sysroot", str(self.sysroot.base)])


@pytest.fixture
def device(tmp_path: Path) -> Device:
    return Device(tmp_path / "xavier")


def test_a_device_that_never_went_has_nothing_to_put_back(device: Device, capsys: pytest.CaptureFixture[str]) -> None:
    assert (device.return_note.pending(), device.return_note.words(), device.return_note.restore()) == (None, "", ())
    device.return_note.forget()
    assert device.modes("restore") == 0
    assert capsys.readouterr().out == "there is nothing to put back.\n"
    assert device.modes("--json") == 0
    assert json.loads(capsys.readouterr().out)["rebooted"] is None


def test_restore_says_the_way_home_and_does_not_reboot(device: Device, capsys: pytest.CaptureFixture[str]) -> None:
    device.goes_away()
    assert device.sysroot.read(STATUS) == "pmode:0001"
    assert device.modes("restore") == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert AWAY in err
    assert "`sudo nvpmodel -m 0`, reboot, and run `powerlab modes restore`" in err
    assert not reboot_requested(device.sysroot)
    assert device.return_note.pending() is not None, "it is asked for again after the reboot"
    assert device.modes() == 0
    assert AWAY in capsys.readouterr().out
    assert device.modes("--json") == 0
    assert json.loads(capsys.readouterr().out)["rebooted"]["mode"] == "MODE_10W"
    assert main(["doctor", "--sysroot", str(device.sysroot.base)]) == 0
    assert AWAY in " ".join(capsys.readouterr().out.split())


def test_at_home_restore_puts_back_what_the_kernel_forgot(device: Device, capsys: pytest.CaptureFixture[str]) -> None:
    device.goes_away()
    device.is_sent_home()
    assert device.sysroot.read(GOVERNOR) == "schedutil"
    assert "is back in MAXN, but its other settings may not be" in device.return_note.words()
    assert device.modes("restore") == 0
    out = capsys.readouterr().out
    assert "= ondemand" in out
    assert "1 setting put back." in out
    assert device.sysroot.read(GOVERNOR) == "ondemand"
    assert device.modes("restore") == 0
    assert capsys.readouterr().out == "there is nothing to put back.\n"


def test_what_needs_no_reboot_is_put_back_and_told_all_the_same(
    device: Device, capsys: pytest.CaptureFixture[str]
) -> None:
    device.goes_away()
    ModeController(device.sysroot, device.state).set("governor=powersave")
    assert device.modes("restore") == 2
    out, err = capsys.readouterr()
    assert "1 setting put back." in out
    assert AWAY in err
    assert device.sysroot.read(GOVERNOR) == "schedutil", "as it was in this boot"


def test_a_boot_after_a_crash_leaves_the_way_home_to_the_agent(
    device: Device, capsys: pytest.CaptureFixture[str]
) -> None:
    device.goes_away()
    assert device.modes("restore", "--if-killed") == 0
    assert capsys.readouterr().out == "there is nothing to put back.\n"
    assert device.return_note.pending() is not None


def test_a_note_that_is_kept_again_has_the_same_home_first(device: Device) -> None:
    device.goes_away()
    first = device.return_note.pending()
    target = first.target[0]
    device.return_note.keep(first.previous[0], first.previous, target)
    assert device.return_note.pending().previous == first.previous
    assert first.previous[0].value == "0"


def test_a_damaged_note_is_told_once(device: Device) -> None:
    device.goes_away()
    (note,) = device.state.glob("modes/*/original-mode.json")
    note.write_text(note.read_text().replace("ondemand", "ondemond"))
    with pytest.raises(PowerlabError, match="damaged and is set aside"):
        device.return_note.words()
    assert device.return_note.words() == ""
