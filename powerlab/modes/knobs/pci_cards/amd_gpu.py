"""The knob ``amd_gpu``: power cap and performance level of AMD's cards (kernel, gpu/amdgpu/thermal.rst, amdgpu_pm.c).

The cap is hwmon's ``power1_cap``, in whole watts. ``power_dpm_force_performance_level`` says who chooses the clocks:
the firmware (``auto``), or one end of their range (``low``, ``high``), or a profile for measurements. Tables of clocks
(``pp_dpm_sclk``, ``pp_od_clk_voltage``) are left alone: what was set there cannot be read back, so not put back either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from powerlab.domain.errors import PowerlabError
from powerlab.modes.base import Form
from powerlab.modes.io.pci_cards import ADDRESS, DRIVERS, address_of, devices, number, one_file, value
from powerlab.modes.io.permissions import FilePermission, Permission
from powerlab.modes.knobs.pci_cards.base import Card, CardKnob
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


class AmdGpu(CardKnob):
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

    parts = (_CAP, _LEVEL)
    cards_named = "AMD card"
    none_there = "no AMD graphics card (driver amdgpu) takes a power cap or a level"

    def cards(self, sysroot: Sysroot) -> Iterator[Card]:
        """Yield every card with a cap or a level."""
        for directory in devices(sysroot, _DRIVER):
            files = {
                _CAP: one_file(sysroot, f"{directory}/hwmon/hwmon*/power1_cap"),
                _LEVEL: one_file(sysroot, f"{directory}/{_LEVEL_FILE}"),
            }
            if there := {part: path for part, path in files.items() if path}:
                yield Card(address_of(directory), there)

    def words(self, sysroot: Sysroot, card: Card) -> Iterator[str]:
        """Yield cap and level."""
        if cap := card.files.get(_CAP):
            yield f"at most {(number(sysroot, cap) or 0) / 1e6:g} W"
        if level := card.files.get(_LEVEL):
            yield f"level {value(sysroot, level) or 'unknown'}"

    def offered(self, sysroot: Sysroot, cards: Sequence[Card]) -> Iterator[str]:
        """Yield caps at 50 and 75 % of the maker's, where they are allowed and lower, and a few levels."""
        limits = [_limits_w(sysroot, cap) for card in cards if (cap := card.files.get(_CAP))]
        if limits:
            low_w, high_w = max(low for low, _, _ in limits), min(now for _, _, now in limits)
            default_w = min(default for _, default, _ in limits)
            wished = sorted({max(low_w, round(share * default_w)) for share in _OFFERED_SHARES})
            yield from (f"amd-gpu-limit={watts}W" for watts in wished if watts < high_w)
        levels = {value(sysroot, level) for card in cards if (level := card.files.get(_LEVEL))}
        if levels and levels.isdisjoint(_BY_HAND):
            yield from (f"amd-gpu-level={level}" for level in _OFFERED_LEVELS if levels != {level})

    def asked(self, sysroot: Sysroot, name: str) -> tuple[str, Iterable[tuple[Card, str, str]]] | None:
        """Return the settings of a cap or a level."""
        if (level := text_of(name, "amd-gpu-level")) is not None:
            return f"runs at the level {level}", self._levels(sysroot, name, level)
        if (watts := whole_of(name, "amd-gpu-limit", "W")) is not None:
            return f"draws at most {watts} W", self._caps(sysroot, name, watts)
        return None

    def _caps(self, sysroot: Sysroot, name: str, watts: int) -> Iterator[tuple[Card, str, str]]:
        for card in self.cards(sysroot):
            if cap := card.files.get(_CAP):
                low_w, high_w = (number(sysroot, f"{cap}_{end}") or 0 for end in ("min", "max"))
                if not low_w <= watts * 1_000_000 <= high_w or watts < 1:
                    raise PowerlabError(
                        f"{name!r} cannot be set: {card.address} takes {low_w / 1e6:g} to {high_w / 1e6:g} W."
                    )
                yield card, _CAP, str(watts * 1_000_000)

    def _levels(self, sysroot: Sysroot, name: str, level: str) -> Iterator[tuple[Card, str, str]]:
        if level not in LEVELS:
            raise PowerlabError(f"{name!r} cannot be set: the levels are {', '.join(LEVELS)}.")
        for card in self.cards(sysroot):
            if file := card.files.get(_LEVEL):
                if (now := value(sysroot, file)) in _BY_HAND:
                    raise PowerlabError(
                        f"{name!r} is not set: the clocks of {card.address} were chosen by hand ({now}) and could not"
                        " be put back; write auto to its power_dpm_force_performance_level first."
                    )
                yield card, _LEVEL, level


def _limits_w(sysroot: Sysroot, cap: str) -> tuple[int, int, float]:
    """Return a card's least and default caps in whole W, and the present one."""
    low_uw, high_uw, now_uw = (number(sysroot, f"{cap}{end}") or 0 for end in ("_min", "_max", ""))
    default_uw = number(sysroot, f"{cap}_default") or high_uw
    return max(1, -(-low_uw // 1_000_000)), default_uw // 1_000_000, now_uw / 1e6
