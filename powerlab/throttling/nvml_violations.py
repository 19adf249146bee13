"""NVIDIA cards: for what reasons their clocks were lowered, and for how long (NVML reference, clocks event reasons).

Two signs are read. Violation counters say for how many ns a policy held the clocks down; they count by themselves, so
their difference over a run misses nothing. The reasons in force are looked at again and again; one without a counter,
or whose counter stands still on this card, is told by the share of looks in which it was seen.

The power limit is no throttling, as with Intel's processors: keeping to what a mode or the maker has set is how a card
runs, and busy cards often do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

from powerlab.domain.power import Availability
from powerlab.nvml_library import Library, NvmlError, NvmlUnavailableError, session, unavailable
from powerlab.sysroot import Sysroot
from powerlab.throttling.base import WatchProbe

_REASON_FUNCTIONS = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
_IDLE = 0x1
_SHORTEST_S = 1e-3
_NO_SIGNS_REMEDY = "the other watches still tell whether the rest of the device was slowed down"


def _heat(library: Library, index: int) -> str:
    try:
        temperature_c = library.ask("nvmlDeviceGetTemperature", library.device(index), 0)
    except NvmlError:
        return f"the heat of GPU{index} held its clocks down"
    return f"the heat of GPU{index} ({temperature_c} °C at the end) held its clocks down"


@dataclass(frozen=True, slots=True)
class _Reason:
    """A reason for lowered clocks: its bits among those in force, its counter, and how it is told."""

    bits: int
    policy: int | None
    told: Callable[[Library, int], str]


_HEAT = _Reason(0x20 | 0x40, 1, _heat)
_BOARD_LIMIT = _Reason(0x200, 3, lambda _, index: f"a limit of GPU{index}'s board held its clocks down")
_POWER_BRAKE = _Reason(0x80, None, lambda _, index: f"the power brake signal of its supply slowed GPU{index} down")
_SLOWDOWN = _Reason(0x8, None, lambda _, index: f"GPU{index}'s hardware slowed it down (heat, power or its supply)")
_REASONS = (_HEAT, _BOARD_LIMIT, _POWER_BRAKE, _SLOWDOWN)
"""The power limit, application clocks, sync boost and display clocks are reasons too, and no throttling."""


@dataclass(slots=True)
class _Card:
    """What one card's counters said at the start, by policy, and how often each reason was seen since, by bits."""

    index: int
    counters_ns: dict[int, int]
    looks: int = 0
    seen: dict[int, int] = field(default_factory=dict)


class NvmlViolations:
    """Watches every card that gives its reasons or its counters."""

    name = "nvml_violations"

    def probe(self, sysroot: Sysroot) -> WatchProbe:
        """Say what the cards tell."""
        try:
            with session(sysroot) as library:
                told = [f"GPU{index} {what}" for index in library.devices() if (what := _signs(library, index))]
        except NvmlUnavailableError as problem:
            return self._answer(problem.availability, problem.detail, problem.remedy)
        except NvmlError as error:
            found = unavailable(error, sysroot)
            return self._answer(found.availability, found.detail, found.remedy)
        if told:
            return self._answer(Availability.AVAILABLE, "; ".join(told))
        return self._answer(Availability.ABSENT, "no NVIDIA card tells why its clocks are low", _NO_SIGNS_REMEDY)

    def start(self, sysroot: Sysroot) -> NvmlWatching:
        """Note where the counters stand."""
        return NvmlWatching(sysroot)

    def _answer(self, availability: Availability, detail: str, remedy: str = "") -> WatchProbe:
        return WatchProbe(watch=self.name, availability=availability, detail=detail, remedy=remedy)


class NvmlWatching:
    """The cards during one measurement; none where NVML cannot be used. NVML stays started until the end."""

    def __init__(self, sysroot: Sysroot) -> None:
        self._stack = ExitStack()
        self._cards: list[tuple[Library, _Card]] = []
        try:
            library = self._stack.enter_context(session(sysroot))
            self._cards = [(library, _Card(index, _counters_ns(library, index))) for index in library.devices()]
        except (NvmlUnavailableError, NvmlError):
            self._stack.close()

    def sample(self) -> None:
        """Look at the reasons in force."""
        for library, card in self._cards:
            reasons = _reasons(library, card.index)
            if reasons is not None:
                card.looks += 1
                if reasons & _IDLE:
                    continue  # nothing computes there, so nothing is slowed down, whatever else is said
                for reason in _REASONS:
                    if reasons & reason.bits:
                        card.seen[reason.bits] = card.seen.get(reason.bits, 0) + 1

    def finish(self) -> tuple[str, ...]:
        """Return what held the clocks down."""
        with self._stack:
            sentences = tuple(sentence for library, card in self._cards for sentence in _sentences(library, card))
        self._cards = []
        return sentences


def _sentences(library: Library, card: _Card) -> Iterator[str]:
    now_ns = _counters_ns(library, card.index)
    named = False
    for reason in _REASONS:
        # The slowdown signal is raised together with its cause, where the card knows the cause.
        if (reason is _SLOWDOWN and named) or (how_long := _how_long(card, reason, now_ns)) is None:
            continue
        named = named or reason in {_HEAT, _POWER_BRAKE}
        yield f"{reason.told(library, card.index)} {how_long}"


def _how_long(card: _Card, reason: _Reason, now_ns: dict[int, int]) -> str | None:
    """Return for how long a reason held, None where it did not."""
    if reason.policy in card.counters_ns and reason.policy in now_ns:
        passed_s = (now_ns[reason.policy] - card.counters_ns[reason.policy]) * 1e-9
        if passed_s >= _SHORTEST_S:
            return f"for {passed_s:.2g} s"
    seen = card.seen.get(reason.bits, 0)
    return f"in {seen} of {card.looks} looks" if seen else None


def _counters_ns(library: Library, index: int) -> dict[int, int]:
    """Return the counters a card has, by policy."""
    found = {}
    for policy in (reason.policy for reason in _REASONS if reason.policy is not None):
        try:
            answer = library.ask("nvmlDeviceGetViolationStatus", library.device(index), policy)
        except NvmlError:
            continue  # cards differ in what they count
        found[policy] = int(answer.violationTime)
    return found


def _reasons(library: Library, index: int) -> int | None:
    """Return the reasons in force now, None where the card does not tell."""
    for function in _REASON_FUNCTIONS:
        try:
            return int(library.ask(function, library.device(index)))
        except NvmlError:
            continue  # the next is the name that drivers before 535 know it by
    return None


def _signs(library: Library, index: int) -> str:
    """Say what a card tells: its reasons, its counters, both, or nothing."""
    signs = ["reasons"] if _reasons(library, index) is not None else []
    if counters := _counters_ns(library, index):
        signs.append(f"{len(counters)} violation counter{'s' * (len(counters) > 1)}")
    return f"tells {' and '.join(signs)}" if signs else ""
