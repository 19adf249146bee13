"""The knob ``intel_gpu``: power limit and clock limits of Intel's graphics under the drivers xe and i915.

Source: kernel, ABI/testing/sysfs-driver-intel-xe-hwmon and sysfs-driver-intel-i915-hwmon (``power1_max``, in µW, 0: not
limited), drivers/gpu/drm/xe/xe_gt_freq.c and i915/gt/intel_gt_sysfs_pm.c (MHz). Graphics inside a processor have
clocks, and no limit of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from powerlab.domain.errors import PowerlabError
from powerlab.modes.base import Form
from powerlab.modes.io.frequency_range import write_high, write_low
from powerlab.modes.io.pci_cards import ADDRESS, DRIVERS, address_of, devices, number, one_file, value
from powerlab.modes.io.permissions import FilePermission, Permission
from powerlab.modes.knobs.pci_cards.base import Card, CardKnob
from powerlab.modes.mode_value import whole_of
from powerlab.sysroot import Sysroot

_CLOCKS = {
    "xe": ("tile0/gt0/freq0/{}_freq", ("min", "max", "rpn", "rp0")),
    "i915": ("drm/card*/gt_{}_freq_mhz", ("min", "max", "RPn", "RP0")),
}
"""By driver, the files of the clock's limits and of its range."""
_LIMIT, _HIGH, _LOW = "power_limit_uw", "max_mhz", "min_mhz"
_OFFERED_SHARES = (0.5, 0.75)
_LEAST_W, _HIGHEST_W = 1, 999


class IntelGpu(CardKnob):
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

    parts = (_LIMIT, _HIGH, _LOW)
    cards_named = "Intel card"
    none_there = "no Intel graphics (drivers xe, i915) with limits"

    def cards(self, sysroot: Sysroot) -> Iterator[Card]:
        """Yield every card with a power limit or clock limits; graphics in a processor count as one."""
        for driver, (pattern, names) in _CLOCKS.items():
            for directory in devices(sysroot, driver):
                low, high, least, most = (one_file(sysroot, f"{directory}/{pattern.format(name)}") for name in names)
                range_mhz = (number(sysroot, least) or 0, number(sysroot, most) or 0)
                files = {_LIMIT: one_file(sysroot, f"{directory}/hwmon/hwmon*/power1_max")}
                if low and high and range_mhz[1]:
                    files |= {_HIGH: high, _LOW: low}
                if there := {part: path for part, path in files.items() if path}:
                    yield Card(address_of(directory), there, range_mhz)

    def words(self, sysroot: Sysroot, card: Card) -> Iterator[str]:
        """Yield the limits."""
        if limit := card.files.get(_LIMIT):
            now_w = (number(sysroot, limit) or 0) / 1e6
            yield f"at most {now_w:g} W" if now_w else "power not limited"
        if high := card.files.get(_HIGH):
            yield f"{value(sysroot, card.files[_LOW])} to {value(sysroot, high)} MHz"

    def offered(self, sysroot: Sysroot, cards: Sequence[Card]) -> Iterator[str]:
        """Yield limits at 50 and 75 % of what the cards are rated for, and of their highest clock, where lower."""
        if limits := [limit for card in cards if (limit := card.files.get(_LIMIT))]:
            rated_w = min(_rated_w(sysroot, limit) for limit in limits)
            now_w = min((number(sysroot, limit) or 0) / 1e6 or rated_w for limit in limits)
            wished = (round(share * rated_w) for share in _OFFERED_SHARES)
            yield from (f"intel-gpu-limit={watts}W" for watts in wished if 1 <= watts < now_w)
        if clocked := [card for card in cards if _HIGH in card.files]:
            low_mhz, top_mhz = max(card.range_mhz[0] for card in clocked), min(card.range_mhz[1] for card in clocked)
            now_mhz = min(number(sysroot, card.files[_HIGH]) or 0 for card in clocked)
            caps = sorted({round(share * top_mhz / 50) * 50 for share in _OFFERED_SHARES})
            yield from (f"intel-gpu-max={mhz}MHz" for mhz in caps if low_mhz <= mhz < now_mhz)

    def asked(self, sysroot: Sysroot, name: str) -> tuple[str, Iterable[tuple[Card, str, str]]] | None:
        """Return the settings of a power limit or a highest clock."""
        if (watts := whole_of(name, "intel-gpu-limit", "W")) is not None:
            return f"draws at most {watts} W", self._limits(sysroot, name, watts)
        if (mhz := whole_of(name, "intel-gpu-max", "MHz")) is not None:
            return f"runs at up to {mhz} MHz", self._clocks(sysroot, name, mhz)
        return None

    def _limits(self, sysroot: Sysroot, name: str, watts: int) -> Iterator[tuple[Card, str, str]]:
        for card in self.cards(sysroot):
            if limit := card.files.get(_LIMIT):
                high_w = _rated_w(sysroot, limit)
                if not _LEAST_W <= watts <= high_w:
                    raise PowerlabError(f"{name!r} cannot be set: {card.address} takes {_LEAST_W} to {high_w:g} W.")
                yield card, _LIMIT, str(watts * 1_000_000)

    def _clocks(self, sysroot: Sysroot, name: str, mhz: int) -> Iterator[tuple[Card, str, str]]:
        for card in self.cards(sysroot):
            if _HIGH in card.files:
                low, high = card.range_mhz
                if not low <= mhz <= high:
                    raise PowerlabError(f"{name!r} cannot be set: the clock of {card.address} is {low} to {high} MHz.")
                yield card, _HIGH, str(mhz)

    def put(self, sysroot: Sysroot, card: Card, part: str, text: str) -> None:
        """Write one part; of two limits of a clock the lower one never passes the higher one."""
        if not text.isdecimal():
            raise PowerlabError(f"{self.name} cannot set {part} of {card.address} to {text!r}: it takes whole numbers.")
        if part == _LIMIT:
            super().put(sysroot, card, part, text)
            return
        write = write_high if part == _HIGH else write_low
        write(sysroot, card.files[_LOW], card.files[_HIGH], int(text))


def _rated_w(sysroot: Sysroot, limit: str) -> float:
    """Return what a card is rated for; where nobody says, its limit now."""
    rated = number(sysroot, limit.replace("power1_max", "power1_rated_max"))
    return (rated or number(sysroot, limit) or _HIGHEST_W * 1e6) / 1e6
