"""The knob ``intel_gpu``: power limit and clock limits of Intel's graphics under the drivers xe and i915.

Source: kernel, ABI/testing/sysfs-driver-intel-xe-hwmon and sysfs-driver-intel-i915-hwmon (``power1_max``, in µW, 0: not
limited), drivers/gpu/drm/xe/xe_gt_freq.c and i915/gt/intel_gt_sysfs_pm.c (MHz). Graphics inside a processor have
clocks, and no limit of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin, PowerMode, Setting
from powerlab.modes import probing
from powerlab.modes.base import Form, KnobProbe
from powerlab.modes.io.files import can_write, write_value
from powerlab.modes.io.frequency_range import write_high, write_low
from powerlab.modes.io.pci_cards import ADDRESS, DRIVERS, address_of, devices, number, one_file, value
from powerlab.modes.io.permissions import FilePermission, Permission
from powerlab.modes.mode_value import text_of, whole_of
from powerlab.sysroot import Sysroot

_CLOCKS = {
    "xe": ("tile0/gt0/freq0/{}_freq", ("min", "max", "rpn", "rp0")),
    "i915": ("drm/card*/gt_{}_freq_mhz", ("min", "max", "RPn", "RP0")),
}
"""By driver, the files of the clock's limits and of its range."""
_LIMIT, _HIGH, _LOW = "power_limit_uw", "max_mhz", "min_mhz"
_OFFERED_SHARES = (0.5, 0.75)
_LEAST_W, _HIGHEST_W = 1, 999


@dataclass(frozen=True, slots=True)
class _Card:
    """One card: the files of its limits, None where it lacks one, and the range of its clock in MHz."""

    address: str
    limit: str | None
    low: str | None
    high: str | None
    range_mhz: tuple[int, int]

    def file(self, part: str) -> str | None:
        return {_LIMIT: self.limit, _HIGH: self.high, _LOW: self.low}.get(part)


class IntelGpu:
    """Its settings are ``ADDRESS.power_limit_uw``, ``ADDRESS.max_mhz`` and ``ADDRESS.min_mhz`` of every card."""

    name = "intel_gpu"
    meaning = "power limit and clock limits of Intel graphics"
    forms: tuple[Form, ...] = (
        Form(name="intel-gpu-limit=NW", meaning="each Intel card draws at most N W"),
        Form(name="intel-gpu-max=NMHz", meaning="the clock of each Intel card goes up to N MHz"),
    )
    permissions: tuple[Permission, ...] = (
        FilePermission(
            path=rf"{DRIVERS}/(xe|i915)/{ADDRESS}/hwmon/hwmon[0-9]{{1,3}}/power1_max", values=r"0|[0-9]{7,9}"
        ),
        FilePermission(path=rf"{DRIVERS}/xe/{ADDRESS}/tile0/gt0/freq0/(min|max)_freq", values=r"[0-9]{2,4}"),
        FilePermission(
            path=rf"{DRIVERS}/i915/{ADDRESS}/drm/card[0-9]{{1,2}}/gt_(min|max)_freq_mhz", values="[0-9]{2,4}"
        ),
    )

    def probe(self, sysroot: Sysroot) -> KnobProbe:
        """Say how the cards are limited, and whether this user may change that."""
        cards = list(_cards(sysroot))
        if not cards:
            return probing.absent(self.name, "no Intel graphics (drivers xe, i915) with limits")
        detail = "; ".join(f"{card.address}: {', '.join(_words(sysroot, card))}" for card in cards)
        files = [path for card in cards for path in (card.limit, card.high) if path]
        if not all(can_write(sysroot, path) for path in files):
            return probing.denied(self.name, detail)
        return probing.available(self.name, detail)

    def modes(self, sysroot: Sysroot) -> Sequence[PowerMode]:
        """Return limits at 50 and 75 % of what the cards are rated for, and of their highest clock, where lower."""
        cards = list(_cards(sysroot))
        names = []
        if limited := [card for card in cards if card.limit]:
            rated_w = min(_rated_w(sysroot, card) for card in limited)
            now_w = min((number(sysroot, card.limit) or 0) / 1e6 or rated_w for card in limited)
            names += [
                f"intel-gpu-limit={watts}W"
                for share in _OFFERED_SHARES
                if 1 <= (watts := round(share * rated_w)) < now_w
            ]
        if clocked := [card for card in cards if card.high]:
            low_mhz, top_mhz = max(card.range_mhz[0] for card in clocked), min(card.range_mhz[1] for card in clocked)
            now_mhz = min(number(sysroot, card.high) or 0 for card in clocked)
            caps = sorted({round(share * top_mhz / 50) * 50 for share in _OFFERED_SHARES})
            names += [f"intel-gpu-max={mhz}MHz" for mhz in caps if low_mhz <= mhz < now_mhz]
        return [self._mode(sysroot, name) for name in names]

    def parse(self, sysroot: Sysroot, name: str) -> PowerMode | None:
        """Return the mode that limits every card that can be limited so."""
        if text_of(name, "intel-gpu-limit") is None and text_of(name, "intel-gpu-max") is None:
            return None
        return self._mode(sysroot, name)

    def _mode(self, sysroot: Sysroot, name: str) -> PowerMode:
        watts = whole_of(name, "intel-gpu-limit", "W")
        if watts is not None:
            settings, what = list(self._limits(sysroot, name, watts)), f"draws at most {watts} W"
        else:
            mhz = whole_of(name, "intel-gpu-max", "MHz") or 0
            settings, what = list(self._clocks(sysroot, name, mhz)), f"runs at up to {mhz} MHz"
        if not settings:
            raise PowerlabError(f"{name} is impossible: no Intel graphics here can be limited so.")
        return PowerMode(
            name=name, settings=tuple(settings), origin=ModeOrigin.INVENTED, description=f"each Intel card {what}"
        )

    def _limits(self, sysroot: Sysroot, name: str, watts: int) -> Iterator[Setting]:
        for card in _cards(sysroot):
            if card.limit:
                high_w = _rated_w(sysroot, card)
                if not _LEAST_W <= watts <= high_w:
                    raise PowerlabError(f"{name!r} cannot be set: {card.address} takes {_LEAST_W} to {high_w:g} W.")
                yield Setting(knob=self.name, target=f"{card.address}.{_LIMIT}", value=str(watts * 1_000_000))

    def _clocks(self, sysroot: Sysroot, name: str, mhz: int) -> Iterator[Setting]:
        for card in _cards(sysroot):
            if card.high:
                low, high = card.range_mhz
                if not low <= mhz <= high:
                    raise PowerlabError(f"{name!r} cannot be set: the clock of {card.address} is {low} to {high} MHz.")
                yield Setting(knob=self.name, target=f"{card.address}.{_HIGH}", value=str(mhz))

    def read(self, sysroot: Sysroot) -> Sequence[Setting]:
        """Return the limits of every card."""
        return [
            Setting(knob=self.name, target=f"{card.address}.{part}", value=text)
            for card in _cards(sysroot)
            for part in (_LIMIT, _HIGH, _LOW)
            if (text := value(sysroot, card.file(part)))
        ]

    def write(self, sysroot: Sysroot, setting: Setting) -> None:
        """Make one setting, and make sure that it holds."""
        address, _, part = setting.target.rpartition(".")
        card = next((card for card in _cards(sysroot) if card.address == address), None)
        path = None if card is None else card.file(part)
        if card is None or path is None or not setting.value.isdecimal():
            parts = ", .".join((_LIMIT, _HIGH, _LOW))
            raise PowerlabError(f"intel_gpu has no setting {setting.target!r} of that kind; it has ADDRESS.{parts}.")
        if part == _LIMIT or card.low is None or card.high is None:
            write_value(sysroot, path, setting.value)
            if (found := value(sysroot, path)) != setting.value:
                raise PowerlabError(f"{path} was set to {setting.value} and reads {found or 'nothing'}; ask for that.")
            return
        write = write_high if part == _HIGH else write_low
        write(sysroot, card.low, card.high, int(setting.value))

    def survives_reboot(self, setting: Setting) -> bool:  # noqa: ARG002 - the same for every setting
        """No: the driver starts with the card's own limits."""
        return False


def _cards(sysroot: Sysroot) -> Iterator[_Card]:
    for driver, (pattern, names) in _CLOCKS.items():
        for directory in devices(sysroot, driver):
            low, high, least, most = (one_file(sysroot, f"{directory}/{pattern.format(name)}") for name in names)
            range_mhz = (number(sysroot, least) or 0, number(sysroot, most) or 0)
            limit = one_file(sysroot, f"{directory}/hwmon/hwmon*/power1_max")
            if limit or (high and range_mhz[1]):
                clocked = bool(low and high and range_mhz[1])
                yield _Card(
                    address_of(directory), limit, low if clocked else None, high if clocked else None, range_mhz
                )


def _words(sysroot: Sysroot, card: _Card) -> Iterator[str]:
    if card.limit:
        now_w = (number(sysroot, card.limit) or 0) / 1e6
        yield f"at most {now_w:g} W" if now_w else "power not limited"
    if card.high:
        yield f"{value(sysroot, card.low)} to {value(sysroot, card.high)} MHz"


def _rated_w(sysroot: Sysroot, card: _Card) -> float:
    """Return what a card is rated for; where nobody says, its limit now."""
    rated = None if card.limit is None else number(sysroot, card.limit.replace("power1_max", "power1_rated_max"))
    return (rated or number(sysroot, card.limit) or _HIGHEST_W * 1e6) / 1e6
