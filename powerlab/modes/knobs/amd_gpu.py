"""The knob ``amd_gpu``: power cap and performance level of AMD's cards (kernel, gpu/amdgpu/thermal.rst, amdgpu_pm.c).

The cap is hwmon's ``power1_cap``, in whole watts. ``power_dpm_force_performance_level`` says who chooses the clocks:
the firmware (``auto``), or one end of their range (``low``, ``high``), or a profile for measurements. Tables of clocks
(``pp_dpm_sclk``, ``pp_od_clk_voltage``) are left alone: what was set there cannot be read back, so not put back either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin, PowerMode, Setting
from powerlab.modes import probing
from powerlab.modes.base import Form, KnobProbe
from powerlab.modes.io.files import can_write, write_value
from powerlab.modes.io.pci_cards import ADDRESS, DRIVERS, address_of, devices, number, one_file, value
from powerlab.modes.io.permissions import FilePermission, Permission
from powerlab.modes.mode_value import text_of, whole_of
from powerlab.sysroot import Sysroot

_DRIVER = "amdgpu"
_LEVEL_FILE = "power_dpm_force_performance_level"
_CAP, _LEVEL = "power_cap_uw", "performance_level"
LEVELS = ("auto", "low", "high", "profile_standard", "profile_min_sclk", "profile_min_mclk", "profile_peak")
_BY_HAND = ("manual", "perf_determinism")
"""Levels whose clocks somebody chose; they would be lost."""
_OFFERED_LEVELS = ("low", "profile_standard", "high")
_OFFERED_SHARES = (0.5, 0.75)


@dataclass(frozen=True, slots=True)
class _Card:
    """One card's files; None where it lacks one."""

    address: str
    cap: str | None
    level: str | None

    def file(self, part: str) -> str | None:
        return {_CAP: self.cap, _LEVEL: self.level}.get(part)


class AmdGpu:
    """Its settings are ``ADDRESS.power_cap_uw`` and ``ADDRESS.performance_level`` of every card."""

    name = "amd_gpu"
    meaning = "power cap and performance level of AMD graphics cards"
    forms: tuple[Form, ...] = (
        Form(name="amd-gpu-limit=NW", meaning="each AMD card draws at most N W"),
        Form(name="amd-gpu-level=LEVEL", meaning=f"who chooses the clocks of AMD cards: {', '.join(LEVELS)}"),
    )
    permissions: tuple[Permission, ...] = (
        FilePermission(
            path=rf"{DRIVERS}/{_DRIVER}/{ADDRESS}/hwmon/hwmon[0-9]{{1,3}}/power1_cap",
            values=r"[0-9]{7,10}",
            between=("power1_cap_min", "power1_cap_max"),
        ),
        FilePermission(path=rf"{DRIVERS}/{_DRIVER}/{ADDRESS}/{_LEVEL_FILE}", values="|".join((*LEVELS, *_BY_HAND))),
    )

    def probe(self, sysroot: Sysroot) -> KnobProbe:
        """Say how the cards are set, and whether this user may change that."""
        cards = list(_cards(sysroot))
        if not cards:
            return probing.absent(self.name, "no AMD graphics card (driver amdgpu) takes a power cap or a level")
        detail = "; ".join(f"{card.address}: {', '.join(_words(sysroot, card))}" for card in cards)
        files = [path for card in cards for path in (card.cap, card.level) if path]
        if not all(can_write(sysroot, path) for path in files):
            return probing.denied(self.name, detail)
        return probing.available(self.name, detail)

    def modes(self, sysroot: Sysroot) -> Sequence[PowerMode]:
        """Return caps at 50 and 75 % of the maker's, where they are allowed and lower, and a few levels."""
        cards = list(_cards(sysroot))
        limits = [_limits_w(sysroot, card) for card in cards if card.cap]
        names = []
        if limits:
            low_w, high_w = max(low for low, _, _ in limits), min(now for _, _, now in limits)
            default_w = min(default for _, default, _ in limits)
            wished = sorted({max(low_w, round(share * default_w)) for share in _OFFERED_SHARES})
            names += [f"amd-gpu-limit={watts}W" for watts in wished if watts < high_w]
        levels = {value(sysroot, card.level) for card in cards if card.level}
        if levels and levels.isdisjoint(_BY_HAND):
            names += [f"amd-gpu-level={level}" for level in _OFFERED_LEVELS if levels != {level}]
        return [self._mode(sysroot, name) for name in names]

    def parse(self, sysroot: Sysroot, name: str) -> PowerMode | None:
        """Return the mode that does the same to every card that can."""
        if text_of(name, "amd-gpu-limit") is None and text_of(name, "amd-gpu-level") is None:
            return None
        return self._mode(sysroot, name)

    def _mode(self, sysroot: Sysroot, name: str) -> PowerMode:
        level = text_of(name, "amd-gpu-level")
        if level is not None:
            settings, what = list(self._levels(sysroot, name, level)), f"runs at the level {level}"
        else:
            watts = whole_of(name, "amd-gpu-limit", "W") or 0
            settings, what = list(self._caps(sysroot, name, watts)), f"draws at most {watts} W"
        if not settings:
            raise PowerlabError(f"{name} is impossible: no AMD graphics card here can be set so.")
        return PowerMode(
            name=name, settings=tuple(settings), origin=ModeOrigin.INVENTED, description=f"each AMD card {what}"
        )

    def _caps(self, sysroot: Sysroot, name: str, watts: int) -> Iterator[Setting]:
        for card in _cards(sysroot):
            if card.cap:
                low_w, high_w = (number(sysroot, f"{card.cap}_{end}") or 0 for end in ("min", "max"))
                if not low_w <= watts * 1_000_000 <= high_w or watts < 1:
                    raise PowerlabError(
                        f"{name!r} cannot be set: {card.address} takes {low_w / 1e6:g} to {high_w / 1e6:g} W."
                    )
                yield Setting(knob=self.name, target=f"{card.address}.{_CAP}", value=str(watts * 1_000_000))

    def _levels(self, sysroot: Sysroot, name: str, level: str) -> Iterator[Setting]:
        if level not in LEVELS:
            raise PowerlabError(f"{name!r} cannot be set: the levels are {', '.join(LEVELS)}.")
        for card in _cards(sysroot):
            if card.level:
                if (now := value(sysroot, card.level)) in _BY_HAND:
                    raise PowerlabError(
                        f"{name!r} is not set: the clocks of {card.address} were chosen by hand ({now}) and could not"
                        " be put back; write auto to its power_dpm_force_performance_level first."
                    )
                yield Setting(knob=self.name, target=f"{card.address}.{_LEVEL}", value=level)

    def read(self, sysroot: Sysroot) -> Sequence[Setting]:
        """Return cap and level of every card."""
        return [
            Setting(knob=self.name, target=f"{card.address}.{part}", value=text)
            for card in _cards(sysroot)
            for part in (_CAP, _LEVEL)
            if (text := value(sysroot, card.file(part)))
        ]

    def write(self, sysroot: Sysroot, setting: Setting) -> None:
        """Make one setting, and make sure that it holds."""
        address, _, part = setting.target.rpartition(".")
        card = next((card for card in _cards(sysroot) if card.address == address), None)
        path = None if card is None else card.file(part)
        if path is None or not re.fullmatch(ADDRESS, address):
            raise PowerlabError(f"amd_gpu has no setting {setting.target!r}; it has ADDRESS.{_CAP} and .{_LEVEL}.")
        write_value(sysroot, path, setting.value)
        if (found := value(sysroot, path)) != setting.value:
            raise PowerlabError(f"{path} was set to {setting.value} and reads {found or 'nothing'}; ask for that.")

    def survives_reboot(self, setting: Setting) -> bool:  # noqa: ARG002 - the same for every setting
        """No: the driver starts with the maker's cap and the level auto."""
        return False


def _cards(sysroot: Sysroot) -> Iterator[_Card]:
    for directory in devices(sysroot, _DRIVER):
        cap = one_file(sysroot, f"{directory}/hwmon/hwmon*/power1_cap")
        level = one_file(sysroot, f"{directory}/{_LEVEL_FILE}")
        if cap or level:
            yield _Card(address_of(directory), cap, level)


def _words(sysroot: Sysroot, card: _Card) -> Iterator[str]:
    if card.cap:
        yield f"at most {(number(sysroot, card.cap) or 0) / 1e6:g} W"
    if card.level:
        yield f"level {value(sysroot, card.level) or 'unknown'}"


def _limits_w(sysroot: Sysroot, card: _Card) -> tuple[int, int, float]:
    """Return a card's least and default caps in whole W, and the present one."""
    low_uw, high_uw, now_uw = (number(sysroot, f"{card.cap}{end}") or 0 for end in ("_min", "_max", ""))
    default_uw = number(sysroot, f"{card.cap}_default") or high_uw
    return max(1, -(-low_uw // 1_000_000)), default_uw // 1_000_000, now_uw / 1e6
