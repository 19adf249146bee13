"""Mode names of NVIDIA cards: ``gpu-limit=200W``, ``gpu-lock=1200MHz``, ``gpu-memory-lock=5001MHz``.

Each is applied to every card that supports it.
"""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin, PowerMode, Setting
from powerlab.modes.base import Form
from powerlab.modes.knobs.nvml_limit.cards import Card, watts
from powerlab.modes.mode_value import number_of, text_of, whole_of

KNOB = "nvml_limit"
LIMIT, CLOCKS, MEMORY = "power_limit_mw", "locked_clocks_mhz", "locked_memory_clocks_mhz"
"""The parts of a card that can be set."""
_LIMIT_KEY, _LOCK_KEY, _MEMORY_KEY = "gpu-limit", "gpu-lock", "gpu-memory-lock"
FORMS: tuple[Form, ...] = (
    Form(name="gpu-limit=NW", meaning="each NVIDIA card draws at most N W"),
    Form(name="gpu-lock=NMHz", meaning="each NVIDIA card's clocks are locked at N MHz"),
    Form(name="gpu-memory-lock=NMHz", meaning="the memory clock of each NVIDIA card is locked at N MHz"),
)
_LIMIT_SHARES = (1.0, 0.75, 0.5)
_CLOCK_SHARES = (0.75, 0.5)
_LEAST_MEMORY_SHARE = 0.5
"""Below, a card's memory only waits: its processor cannot have its usual clocks there."""


def setting_of(card: Card, part: str, value: str) -> Setting:
    """Return a setting of one part of a card."""
    return Setting(knob=KNOB, target=f"{card.name}.{part}", value=value)


def offered_names(cards: Sequence[Card]) -> list[str]:
    """Return limits of 100, 75 and 50 % of the maker's, locks at 75 and 50 % of the highest clock, and of the memory's.

    Each is possible for every card that can be limited or locked; unlike cards may share none.
    """
    return [*_offered_limits(_limited(cards)), *_offered_locks(_lockable(cards)), *_offered_memory_locks(cards)]


def _offered_limits(cards: Sequence[Card]) -> list[str]:
    if not cards:
        return []
    low_mw, high_mw = max(card.low_mw for card in cards), min(card.high_mw for card in cards)
    default_mw = min(card.default_mw for card in cards)
    limits_mw = [min(high_mw, max(low_mw, int(share * default_mw) // 1000 * 1000)) for share in _LIMIT_SHARES]
    return [f"{_LIMIT_KEY}={watts(limit_mw)}W" for limit_mw in dict.fromkeys(limits_mw) if low_mw <= high_mw]


def _offered_locks(cards: Sequence[Card]) -> list[str]:
    shared = sorted(set.intersection(*(set(card.clocks_mhz) for card in cards))) if cards else []
    clocks_mhz = [min(shared, key=lambda mhz: abs(mhz - share * shared[-1])) for share in _CLOCK_SHARES if shared]
    return [f"{_LOCK_KEY}={clock_mhz}MHz" for clock_mhz in dict.fromkeys(clocks_mhz)]


def _offered_memory_locks(cards: Sequence[Card]) -> list[str]:
    """Return a lock at each clock in the upper half of the memory's range but the highest, which it has anyway."""
    able = [set(card.memory_clocks_mhz) for card in cards if card.memory_clocks_mhz]
    shared = sorted(set.intersection(*able)) if able else []
    return [f"{_MEMORY_KEY}={mhz}MHz" for mhz in shared[:-1] if mhz >= _LEAST_MEMORY_SHARE * shared[-1]]


def is_own(name: str) -> bool:
    """Say whether a name is one of these modes, possible or not."""
    return any(text_of(name, key) is not None for key in (_LIMIT_KEY, _LOCK_KEY, _MEMORY_KEY))


def mode_of(cards: Sequence[Card], name: str) -> PowerMode:
    """Return the mode of a name of which :func:`is_own` holds.

    Raises:
        PowerlabError: the name is malformed, or a card cannot do it.
    """
    limit_w = number_of(name, _LIMIT_KEY, "W")
    if limit_w is not None:
        settings, what = _limits(cards, name, round(limit_w * 1000)), f"draws at most {limit_w:.10g} W"
    elif (memory_mhz := whole_of(name, _MEMORY_KEY, "MHz")) is not None:
        settings, what = _memory_locks(cards, name, memory_mhz), f"has its memory clock locked at {memory_mhz} MHz"
    else:
        clock_mhz = whole_of(name, _LOCK_KEY, "MHz") or 0
        settings, what = _locks(cards, name, clock_mhz), f"has its clocks locked at {clock_mhz} MHz"
    return PowerMode(
        name=name,
        settings=tuple(settings),
        origin=ModeOrigin.INVENTED,
        description=f"each NVIDIA card {what}",
    )


def _limits(cards: Sequence[Card], name: str, limit_mw: int) -> list[Setting]:
    if not _limited(cards):
        raise PowerlabError(f"{name} is impossible: no NVIDIA card here lets its power be limited.")
    for card in _limited(cards):
        card.check_limit(limit_mw)
    return [setting_of(card, LIMIT, str(limit_mw)) for card in _limited(cards)]


def _locks(cards: Sequence[Card], name: str, clock_mhz: int) -> list[Setting]:
    if not _lockable(cards):
        raise PowerlabError(f"{name} is impossible: no NVIDIA card here lets its clocks be locked.")
    for card in _lockable(cards):
        card.check_clock(clock_mhz)
    return [setting_of(card, CLOCKS, f"{clock_mhz}-{clock_mhz}") for card in _lockable(cards)]


def _memory_locks(cards: Sequence[Card], name: str, clock_mhz: int) -> list[Setting]:
    able = [card for card in cards if card.memory_clocks_mhz]
    if not able:
        raise PowerlabError(f"{name} is impossible: no NVIDIA card here lets its memory clock be locked.")
    for card in able:
        card.check_clock(clock_mhz, of_memory=True)
    return [setting_of(card, MEMORY, f"{clock_mhz}-{clock_mhz}") for card in able]


def _limited(cards: Sequence[Card]) -> list[Card]:
    return [card for card in cards if card.limit_mw is not None]


def _lockable(cards: Sequence[Card]) -> list[Card]:
    return [card for card in cards if card.clocks_mhz]
