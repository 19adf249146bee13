from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.domain.power import Availability
from powerlab.modes.controller import ModeController
from powerlab.modes.knobs.emc import knob as module
from powerlab.modes.knobs.emc.knob import Emc
from powerlab.sysroot import Sysroot

XAVIER_CAP = "/sys/kernel/nvpmodel_emc_cap/emc_iso_cap"
ORIN_CAP = "/sys/kernel/nvpmodel_clk_cap/emc"
BPMP = "/sys/kernel/debug/bpmp/debug/clk/emc"
OVERRIDE = "/sys/kernel/debug/clk/override.emc"
BWMGR = "/sys/kernel/debug/tegra_bwmgr"
Put = Callable[[str, str], None]
Make = Callable[[dict[str, str]], Sysroot]


def setting(target: str, value: str) -> Setting:
    return Setting(knob="emc", target=target, value=value)


def firmware(locked: str = "0") -> dict[str, str]:
    return {
        f"{BPMP}/mrq_rate_locked": locked,
        f"{BPMP}/rate": "1065600000",
        f"{BPMP}/min_rate": "204000000",
        f"{BPMP}/max_rate": "2133000000",
    }


def test_a_machine_without_one_says_so(tmp_path: Path) -> None:
    assert Emc().probe(Sysroot(tmp_path)).availability is Availability.ABSENT
    assert list(Emc().read(Sysroot(tmp_path))) == list(Emc().modes(Sysroot(tmp_path))) == []
    assert Emc().parse(Sysroot(tmp_path), "emc-max=1065600000Hz") is None


def test_the_modes_are_the_caps_of_the_vendors_own(board: Sysroot, put: Put) -> None:
    names = [mode.name for mode in Emc().modes(board)]
    assert names == ["emc-max=1065600000Hz", "emc-max=1331200000Hz", "emc-max=1600000000Hz"]
    put(XAVIER_CAP, "1331200000")
    assert [mode.name for mode in Emc().modes(board)] == names[:1], "a listed cap never raises the present one"
    board.path("/etc/nvpmodel.conf").unlink()
    assert list(Emc().modes(board)) == []


@pytest.mark.parametrize("path", [XAVIER_CAP, ORIN_CAP])
def test_the_cap_is_set_lifted_and_put_back(make_tree: Make, state_dir: Path, path: str) -> None:
    board = make_tree({path: "1600000000"})
    controller = ModeController(board, state_dir)
    assert Emc().probe(board).detail == "capped at 1600000000 Hz"
    with controller.applied("emc-max=665600000Hz") as mode:
        assert board.read(path) == "665600000"
        assert mode.description == "memory clock up to 665.6 MHz"
    with controller.applied("emc-max=0Hz") as mode:
        assert board.read(path) == "0"
        assert "not limited" in mode.description
    assert board.read(path) == "1600000000"


def test_orins_file_comes_before_the_older_one(make_tree: Make) -> None:
    board = make_tree({ORIN_CAP: "0", XAVIER_CAP: "1600000000"})
    Emc().write(board, setting("cap_hz", "2133000000"))
    assert (board.read(ORIN_CAP), board.read(XAVIER_CAP)) == ("2133000000", "1600000000")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("emc-max=1331200kHz", "states no number in Hz"),
        ("emc-max=1331200Hz", "give 204000000 to 2133000000 Hz, or 0"),
        ("emc-max=2133000001Hz", "give 204000000"),
        ("emc-max=Hz", "write it like"),
    ],
)
def test_what_is_impossible_is_refused(board: Sysroot, name: str, says: str) -> None:
    with pytest.raises(PowerlabError, match=says):
        Emc().parse(board, name)


def test_a_slip_of_the_unit_is_refused_even_where_the_device_tells_no_bounds(make_tree: Make) -> None:
    board = make_tree({ORIN_CAP: "0"})
    for name in ("emc-max=2133Hz", "emc-max=2133000Hz", "emc-max=99999999999Hz"):
        with pytest.raises(PowerlabError, match="or 0 for no cap"):
            Emc().parse(board, name)


def test_a_clock_that_can_only_be_pinned_is_pinned_and_freed(make_tree: Make, state_dir: Path) -> None:
    board = make_tree(firmware())
    controller = ModeController(board, state_dir)
    assert Emc().probe(board).detail == "not limited"
    with controller.applied("emc-max=1600000000Hz") as mode:
        assert mode.settings == (setting("pin_hz", "1600000000"),)
        assert (board.read(f"{BPMP}/mrq_rate_locked"), board.read(f"{BPMP}/rate")) == ("1", "1600000000")
        assert Emc().probe(board).detail == "pinned at 1600000000 Hz"
    assert board.read(f"{BPMP}/mrq_rate_locked") == "0"


def test_a_pinned_clock_is_pinned_where_it_was(make_tree: Make, state_dir: Path) -> None:
    board = make_tree(firmware(locked="1"))
    with ModeController(board, state_dir).applied("emc-max=0Hz"):
        assert board.read(f"{BPMP}/mrq_rate_locked") == "0"
    assert (board.read(f"{BPMP}/mrq_rate_locked"), board.read(f"{BPMP}/rate")) == ("1", "1065600000")


def test_nanos_files_have_other_names(make_tree: Make, state_dir: Path) -> None:
    board = make_tree(
        {
            f"{OVERRIDE}/clk_state": "0",
            f"{OVERRIDE}/clk_update_rate": "204000000",
            f"{BWMGR}/emc_min_rate": "40800000",
            f"{BWMGR}/emc_max_rate": "1600000000",
        }
    )
    with ModeController(board, state_dir).applied("emc-max=800000000Hz"):
        assert board.read(f"{OVERRIDE}/clk_update_rate") == "800000000"
    assert board.read(f"{OVERRIDE}/clk_state") == "0"


def test_garbage_is_broken_and_not_a_crash(make_tree: Make) -> None:
    board = make_tree({ORIN_CAP: "none"})
    assert Emc().probe(board).availability is Availability.BROKEN
    assert list(Emc().read(board)) == []
    with pytest.raises(PowerlabError, match="has no setting"):
        Emc().write(board, setting("pin_hz", "0"))


def test_a_user_who_may_not_is_told(board: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "can_write", lambda sysroot, path: False)
    assert Emc().probe(board).availability is Availability.DENIED
