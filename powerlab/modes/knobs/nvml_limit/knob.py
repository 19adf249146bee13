"""The knob ``nvml_limit``: power limit and locked clocks of NVIDIA cards (NVML reference, device commands).

A limit is put back to what it was before, not to the maker's. NVML cannot say which clocks are locked: powerlab
remembers what it locked itself (:mod:`powerlab.modes.knobs.nvml_limit.locks`), and what another program locked reads
``unlocked``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import PowerMode, Setting
from powerlab.domain.power import Availability
from powerlab.modes import probing
from powerlab.modes.base import KnobProbe
from powerlab.modes.io.permissions import Permission, SettingPermission
from powerlab.modes.knobs.nvml_limit.cards import Card, read_cards, watts
from powerlab.modes.knobs.nvml_limit.locks import (
    UNLOCKED,
    Record,
    forget_lock,
    locked_clocks,
    memory_key,
    note_lock,
    read_record,
)
from powerlab.modes.knobs.nvml_limit.names import (
    CLOCKS,
    FORMS,
    KNOB,
    LIMIT,
    MEMORY,
    is_own,
    mode_of,
    offered_names,
    setting_of,
)
from powerlab.modes.undo.lock import held_lock
from powerlab.nvml_library import Library, NvmlError, NvmlUnavailableError, session, unavailable
from powerlab.privileged import client
from powerlab.sysroot import Sysroot

_TARGET = re.compile(rf"GPU(?P<index>[0-9]{{1,2}})\.(?P<part>{LIMIT}|{CLOCKS}|{MEMORY})")
_RANGE_MHZ = re.compile(r"(?P<low>[0-9]{1,5})-(?P<high>[0-9]{1,5})")
_NO_LIMITS = "this system's NVIDIA cards let neither their power limit nor their clocks be set"
_DENIED_REMEDY = "run powerlab as root (sudo), or start the privileged helper: NVIDIA's driver lets nobody else"


class NvmlLimit:
    """Its settings are ``GPUn.power_limit_mw``, ``GPUn.locked_clocks_mhz`` and ``GPUn.locked_memory_clocks_mhz``.

    Locked clocks read ``low-high`` or ``unlocked``.
    """

    name = KNOB
    meaning = "power limit and locked clocks of NVIDIA cards"
    forms = FORMS
    permissions: tuple[Permission, ...] = (
        SettingPermission(target=rf"GPU[0-9]{{1,2}}\.{LIMIT}", values="[0-9]{1,8}"),
        SettingPermission(
            target=rf"GPU[0-9]{{1,2}}\.({CLOCKS}|{MEMORY})", values=f"{UNLOCKED}|[0-9]{{1,5}}-[0-9]{{1,5}}"
        ),
    )

    def probe(self, sysroot: Sysroot) -> KnobProbe:
        """Say whether there are cards with limits, and whether this user may set them."""
        try:
            cards = self._cards(sysroot)
        except NvmlUnavailableError as problem:
            return KnobProbe(knob=KNOB, availability=problem.availability, detail=problem.detail, remedy=problem.remedy)
        limits = [
            f"{card.name} draws at most {watts(card.limit_mw)} W ({watts(card.low_mw)} to {watts(card.high_mw)} W)"
            for card in cards
            if card.limit_mw is not None
        ]
        if not limits and not any(card.clocks_mhz for card in cards):
            return probing.absent(KNOB, _NO_LIMITS)
        detail = "; ".join(limits) or "clocks can be locked, power cannot be limited"
        if sysroot.simulated or os.geteuid() == 0 or client.may_set(sysroot, KNOB):
            return probing.available(KNOB, detail)
        return probing.denied(KNOB, detail, _DENIED_REMEDY)

    def modes(self, sysroot: Sysroot) -> Sequence[PowerMode]:
        """Return limits of 100, 75 and 50 % of the maker's, and clocks locked at 75 and 50 % of the highest."""
        try:
            cards = self._cards(sysroot)
        except NvmlUnavailableError:
            return []
        return [mode_of(cards, name) for name in offered_names(cards)]

    def parse(self, sysroot: Sysroot, name: str) -> PowerMode | None:
        """Return ``gpu-limit=NW`` or ``gpu-lock=NMHz``: the same for every card that can be limited or locked."""
        if not is_own(name):
            return None
        try:
            return mode_of(self._cards(sysroot), name)
        except NvmlUnavailableError as problem:
            raise _refusal(problem) from None

    def read(self, sysroot: Sysroot) -> Sequence[Setting]:
        """Return the limit and the locked clocks of every card."""
        try:
            cards = self._cards(sysroot)
        except NvmlUnavailableError as problem:
            if problem.availability is Availability.ABSENT:
                return []
            raise _refusal(problem) from None
        settings = []
        for card in cards:
            if card.limit_mw is not None:
                settings.append(setting_of(card, LIMIT, str(card.limit_mw)))
            if card.clocks_mhz:
                settings.append(setting_of(card, CLOCKS, locked_clocks(sysroot, card.uuid, card.energy_mj)))
            if card.memory_clocks_mhz:
                locked = locked_clocks(sysroot, memory_key(card.uuid), card.energy_mj)
                settings.append(setting_of(card, MEMORY, locked))
        return settings

    def write(self, sysroot: Sysroot, setting: Setting) -> None:
        """Limit or lock one card, through the privileged helper where this user may not."""
        match = _TARGET.fullmatch(setting.target)
        if match is None:
            raise PowerlabError(
                f"nvml_limit has no setting {setting.target!r}; it has GPUn.{LIMIT}, .{CLOCKS} and .{MEMORY}."
            )
        if os.geteuid() != 0 and client.may_set(sysroot, KNOB):
            try:
                client.make_setting(sysroot, KNOB, setting.target, setting.value, held_lock(sysroot))
            except OSError as error:
                why = error.strerror or "the helper's system refuses"
                raise PowerlabError(f"{setting.target} does not take {setting.value} ({why}).") from None
            return
        try:
            with session(sysroot) as library:
                card = next((card for card in read_cards(library) if card.index == int(match["index"])), None)
                if card is None:
                    raise PowerlabError(f"GPU{match['index']} is gone; `nvidia-smi -L` lists the cards.")
                if match["part"] == LIMIT:
                    _write_limit(library, card, setting.value)
                else:
                    _write_clocks(sysroot, library, card, setting.value, of_memory=match["part"] == MEMORY)
            self._check_held(sysroot, setting)
        except NvmlUnavailableError as problem:
            raise _refusal(problem) from None
        except NvmlError as error:
            why = _DENIED_REMEDY if error.denied else f"NVML says: {error.words}"
            raise PowerlabError(f"{setting.target} does not take {setting.value} ({why}).") from None

    def survives_reboot(self, setting: Setting) -> bool:  # noqa: ARG002 - the same for every setting
        """No: the driver starts with the maker's limit and no lock."""
        return False

    def _cards(self, sysroot: Sysroot) -> tuple[Card, ...]:
        try:
            with session(sysroot) as library:
                return read_cards(library)
        except NvmlError as error:
            raise unavailable(error, sysroot) from None

    def _check_held(self, sysroot: Sysroot, setting: Setting) -> None:
        """Read back in a session of its own: a driver that nobody keeps awake forgets what it was told."""
        if setting not in self.read(sysroot):
            now = {found.target: found.value for found in self.read(sysroot)}.get(setting.target, "nothing")
            raise PowerlabError(
                f"{setting.target} was set to {setting.value} and reads {now}: either the driver forgot it when"
                " powerlab let go of it, and `sudo nvidia-smi -pm 1` makes it remember, or another program sets it too."
            )


def _refusal(problem: NvmlUnavailableError) -> PowerlabError:
    return PowerlabError(f"{problem.detail}; {problem.remedy}." if problem.remedy else f"{problem.detail}.")


def _write_limit(library: Library, card: Card, value: str) -> None:
    if not re.fullmatch("[0-9]{1,8}", value):
        raise PowerlabError(f"{value!r} is not a power limit in mW; write it as an integer.")
    card.check_limit(int(value))
    library.ask("nvmlDeviceSetPowerManagementLimit", library.device(card.index), int(value))


def _write_clocks(sysroot: Sysroot, library: Library, card: Card, value: str, *, of_memory: bool) -> None:
    what, key = ("Memory", memory_key(card.uuid)) if of_memory else ("Gpu", card.uuid)
    if value == UNLOCKED:
        library.ask(f"nvmlDeviceReset{what}LockedClocks", library.device(card.index))
        forget_lock(sysroot, key)
        return
    match = _RANGE_MHZ.fullmatch(value)
    if match is None:
        raise PowerlabError(f"{value!r} locks no clocks; write low-high in MHz, or {UNLOCKED}.")
    low, high = int(match["low"]), int(match["high"])
    for clock in (low, high):
        card.check_clock(clock, of_memory)
    before = read_record(sysroot, key)
    note_lock(sysroot, key, Record(low, high, card.energy_mj))
    try:
        library.ask(f"nvmlDeviceSet{what}LockedClocks", library.device(card.index), low, high)
    except NvmlError:
        if before is None:
            forget_lock(sysroot, key)
        else:
            note_lock(sysroot, key, before)
        raise
