"""The knob ``platform_profile``: the firmware's own power profile (kernel, userspace-api/sysfs-platform_profile)."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin, PowerMode, Setting
from powerlab.modes import probing
from powerlab.modes.base import Form, KnobProbe
from powerlab.modes.io.files import can_write, read_value, write_value
from powerlab.modes.io.permissions import FilePermission, Permission
from powerlab.modes.mode_value import text_of
from powerlab.sysroot import Sysroot

_PROFILE = "/sys/firmware/acpi/platform_profile"
_CHOICES = "/sys/firmware/acpi/platform_profile_choices"
_TARGET = "profile"


class PlatformProfile:
    """Its setting is ``profile``. On many laptops a profile brings power limits and energy preferences of its own."""

    name = "platform_profile"
    meaning = "the firmware's power profile of a laptop or desktop"
    forms: tuple[Form, ...] = (Form(name="profile=X", meaning="the firmware's profile X"),)
    permissions: tuple[Permission, ...] = (FilePermission(path=_PROFILE, values=r"[a-z]{1,16}(-[a-z]{1,16}){0,2}"),)

    def probe(self, sysroot: Sysroot) -> KnobProbe:
        """Say which profile is set, and whether another one may be."""
        now, choices = _now(sysroot), _choices(sysroot)
        if not now or not choices:
            return probing.absent(self.name, "the firmware offers no profiles to Linux (mostly laptops do)")
        if now not in choices:
            return probing.broken(
                self.name,
                f"the profile is {now}, which can be read and not set, so powerlab could not put it back",
                f"choose one of {', '.join(choices)} first, for example with `powerprofilesctl set balanced`",
            )
        if not can_write(sysroot, _PROFILE):
            return probing.denied(self.name, f"profile {now} of {', '.join(choices)}")
        return probing.available(self.name, f"profile {now} of {', '.join(choices)}")

    def modes(self, sysroot: Sysroot) -> Sequence[PowerMode]:
        """Return every profile of the firmware."""
        return [self._mode(choice) for choice in _choices(sysroot)]

    def parse(self, sysroot: Sysroot, name: str) -> PowerMode | None:
        """Return the mode with that profile."""
        profile = text_of(name, "profile")
        if profile is None:
            return None
        choices = _choices(sysroot)
        if profile not in choices:
            raise PowerlabError(f"{name!r} cannot be set: this firmware has {', '.join(choices) or 'no profiles'}.")
        return self._mode(profile)

    def _mode(self, profile: str) -> PowerMode:
        return PowerMode(
            name=f"profile={profile}",
            settings=(Setting(knob=self.name, target=_TARGET, value=profile),),
            origin=ModeOrigin.VENDOR,
            description=f"the firmware's profile {profile}",
        )

    def read(self, sysroot: Sysroot) -> Sequence[Setting]:
        """Return the profile."""
        now = _now(sysroot)
        return [Setting(knob=self.name, target=_TARGET, value=now)] if now else []

    def write(self, sysroot: Sysroot, setting: Setting) -> None:
        """Set the profile."""
        if setting.target != _TARGET:
            raise PowerlabError(f"platform_profile has no setting {setting.target!r}; it has {_TARGET}.")
        write_value(sysroot, _PROFILE, setting.value)

    def survives_reboot(self, setting: Setting) -> bool:  # noqa: ARG002 - there is one
        """No: most firmware starts with its default; where one keeps it, the desktop's own service sets it anew."""
        return False


def _now(sysroot: Sysroot) -> str:
    try:
        return read_value(sysroot, _PROFILE)
    except OSError:
        return ""


def _choices(sysroot: Sysroot) -> list[str]:
    try:
        return read_value(sysroot, _CHOICES).split()
    except OSError:
        return []
