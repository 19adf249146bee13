from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE, ModeOrigin, Setting
from powerlab.domain.power import Availability
from powerlab.modes.controller import ModeController
from powerlab.modes.knobs import platform_profile as module
from powerlab.modes.knobs.platform_profile import PlatformProfile
from powerlab.sysroot import Sysroot

PROFILE = "/sys/firmware/acpi/platform_profile"
Make = Callable[[dict[str, str]], Sysroot]


@pytest.fixture
def laptop(make_tree: Make) -> Sysroot:
    return make_tree(
        {PROFILE: "balanced", f"{PROFILE}_choices": "low-power quiet balanced balanced-performance performance"}
    )


def test_a_machine_without_profiles_says_so(tmp_path: Path) -> None:
    assert PlatformProfile().probe(Sysroot(tmp_path)).availability is Availability.ABSENT
    assert list(PlatformProfile().read(Sysroot(tmp_path))) == list(PlatformProfile().modes(Sysroot(tmp_path))) == []


def test_every_choice_is_a_mode_and_the_profile_comes_back(laptop: Sysroot, state_dir: Path) -> None:
    controller = ModeController(laptop, state_dir)
    modes = [mode for mode in controller.modes() if mode != CURRENT_MODE]
    assert [mode.name for mode in modes][:2] == ["profile=low-power", "profile=quiet"]
    assert all(mode.origin is ModeOrigin.VENDOR for mode in modes)
    for mode in modes:
        with controller.applied(mode.name):
            assert laptop.read(PROFILE) == mode.name.removeprefix("profile=")
        assert laptop.read(PROFILE) == "balanced"


@pytest.mark.parametrize("name", ["profile=turbo", "profile=", "profile=low", "profile=balanced performance"])
def test_what_the_firmware_does_not_have_is_refused_with_what_it_has(laptop: Sysroot, name: str) -> None:
    with pytest.raises(PowerlabError, match="this firmware has low-power, quiet, balanced"):
        PlatformProfile().parse(laptop, name)


def test_a_profile_that_cannot_be_set_back_is_not_left(laptop: Sysroot, state_dir: Path) -> None:
    """Kernels from 6.14 read ``custom`` where a driver's own values are in force, and refuse to write it."""
    laptop.path(PROFILE).write_text("custom\n")
    probe = PlatformProfile().probe(laptop)
    assert probe.availability is Availability.BROKEN
    assert "could not put it back" in probe.detail
    assert "powerprofilesctl" in probe.remedy
    with pytest.raises(PowerlabError, match="profile=quiet cannot be set: platform_profile is broken here"):
        ModeController(laptop, state_dir).mode("profile=quiet")
    assert PlatformProfile().read(laptop)[0].value == "custom", "who changes it meanwhile is still seen"


def test_a_setting_that_does_not_exist_is_refused(laptop: Sysroot) -> None:
    with pytest.raises(PowerlabError, match="has no setting"):
        PlatformProfile().write(laptop, Setting(knob="platform_profile", target="colour", value="quiet"))


def test_a_user_who_may_not_is_told(laptop: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "can_write", lambda sysroot, path: False)
    probe = PlatformProfile().probe(laptop)
    assert probe.availability is Availability.DENIED
    assert probe.detail.startswith("profile balanced of low-power, quiet")
