"""A power mode by name: one knob's, parts joined with +, or a set the device's owner has named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE, ModeOrigin
from powerlab.modes.controller import ModeController
from powerlab.modes.knobs import hotplug
from powerlab.modes.knobs.nvpmodel import knob as nvpmodel
from powerlab.modes.naming import OWN_MODES
from powerlab.sysroot import Sysroot

POLICY0 = "/sys/devices/system/cpu/cpufreq/policy0"
TWO_PARTS = "governor=performance+cpu-max=576000kHz"


def write_own_modes(board: Sysroot, text: str) -> None:
    path = board.path(OWN_MODES)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_part_alone_is_that_knobs_mode(controller: ModeController) -> None:
    assert controller.mode("governor=performance") in controller.modes()
    assert controller.mode("current") == CURRENT_MODE


def test_parts_are_set_together_and_put_back_together(board: Sysroot, controller: ModeController) -> None:
    before = board.read(f"{POLICY0}/scaling_governor"), board.read(f"{POLICY0}/scaling_max_freq")
    with controller.applied(TWO_PARTS) as mode:
        assert mode.origin is ModeOrigin.INVENTED
        assert mode.name == TWO_PARTS
        assert board.read(f"{POLICY0}/scaling_governor") == "performance"
        assert board.read(f"{POLICY0}/scaling_max_freq") == "576000"
        assert controller.drifted(TWO_PARTS) is None
    assert (board.read(f"{POLICY0}/scaling_governor"), board.read(f"{POLICY0}/scaling_max_freq")) == before


def test_a_vendors_mode_can_be_changed_in_part(board: Sysroot, controller: ModeController) -> None:
    with controller.applied("MODE_15W+governor=powersave"):
        assert board.read("/sys/devices/system/cpu/cpu5/online") == "0", "the vendor's part"
        assert board.read(f"{POLICY0}/scaling_governor") == "powersave", "the other part, made after it"
    assert board.read("/sys/devices/system/cpu/cpu5/online") == "1"


def test_parts_that_contradict_each_other_are_refused(controller: ModeController) -> None:
    with pytest.raises(PowerlabError, match="both to powersave and to performance"):
        controller.mode("governor=powersave+governor=performance")


@pytest.mark.parametrize("name", ["", "+", "governor=performance+", "MAXN+nonsense", "cores", "a+b", "=+="])
def test_what_no_knob_knows_is_refused_with_what_there_is(controller: ModeController, name: str) -> None:
    with pytest.raises(PowerlabError, match="choose one of: current, MAXN"):
        controller.mode(name)


def test_the_owner_can_name_a_set(board: Sysroot, controller: ModeController) -> None:
    write_own_modes(board, f'[modes]\nquiet = "{TWO_PARTS}"\n')
    assert controller.modes()[-1].name == "quiet"
    assert controller.mode("quiet").settings == controller.mode(TWO_PARTS).settings
    with controller.applied("quiet"):
        assert board.read(f"{POLICY0}/scaling_max_freq") == "576000"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[modes", "is not valid TOML"),
        ("modes = 3", r"needs a table \[modes\]"),
        ("[modes]\nquiet = 7", r"needs a table \[modes\]"),
        ('[modes]\nquiet = "cores=2+warp=9"', "which this device cannot do: it has no mode of that name"),
        ('[modes]\nquiet = "cores=99"', "which this device cannot do: 'cores=99' cannot be set: choose from 1 to 8"),
        ('[modes]\nquiet = "package-limit=9W"', "which this device cannot do: .* rapl_limit is absent here"),
        ('[modes]\nquiet = "quiet"', "which this device cannot do: it has no mode of that name"),
        ('[modes]\nquiet = "loud"\nloud = "quiet"', "which this device cannot do: it has no mode of that name"),
    ],
)
def test_a_malformed_file_of_the_owners_is_one_sentence(
    board: Sysroot, controller: ModeController, text: str, complaint: str
) -> None:
    offered = controller.modes()
    write_own_modes(board, text)
    with pytest.raises(PowerlabError, match=complaint):
        controller.mode("quiet")
    assert re.search(complaint, controller.own_problems()[0])
    assert controller.modes() == offered, "what is wrong in the file hides no other mode"


def test_an_unreadable_file_of_the_owners_is_one_sentence(board: Sysroot, controller: ModeController) -> None:
    Path(board.path(OWN_MODES)).mkdir(parents=True)
    with pytest.raises(PowerlabError, match="cannot be read"):
        controller.mode("quiet")
    assert "cannot be read" in controller.own_problems()[0]


@pytest.mark.parametrize("name", ["MAXN", "cores=3", "current"])
def test_the_owner_cannot_take_a_name_that_the_device_has(
    board: Sysroot, controller: ModeController, name: str
) -> None:
    before = controller.mode(name)
    write_own_modes(board, f'[modes]\n"{name}" = "cores=2"\nquiet = "cores=2"\n')
    assert controller.own_problems() == (
        f"fix {OWN_MODES}: the device has a mode {name} without it; give yours another name.",
    )
    assert controller.mode(name) == before
    assert [mode.name for mode in controller.modes()].count(name) <= 1
    assert controller.modes()[-1].name == "quiet"


def test_a_name_whose_knob_may_not_be_turned_says_what_to_do(
    controller: ModeController, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (nvpmodel, hotplug):
        monkeypatch.setattr(module, "can_write", lambda sysroot, path: False)
    for name in ("cores=2", "governor=performance+cores=2", "MODE_15W"):
        with pytest.raises(PowerlabError, match=r"cannot be set: \w+ is denied here: .*root"):
            controller.mode(name)


def test_a_name_whose_knob_is_absent_says_so(controller: ModeController) -> None:
    with pytest.raises(
        PowerlabError, match=r"package-limit=65W cannot be set: rapl_limit is absent here: no processor"
    ):
        controller.mode("cores=2+package-limit=65W")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("maxn", r"no power mode 'maxn' \(did you mean MAXN\?\)"),
        (
            "governor=performance+MODE_15",
            r"^'governor=.*': this device has no power mode 'MODE_15' \(did you mean MODE_15W",
        ),
        ("current+cores=2", "'current\\+cores=2' cannot be set: `current` changes nothing .* leave it out"),
    ],
)
def test_who_misspells_a_name_is_told_the_right_one(controller: ModeController, name: str, says: str) -> None:
    with pytest.raises(PowerlabError, match=says):
        controller.mode(name)
