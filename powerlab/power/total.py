"""Which rails, added up, are the board's power."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from powerlab.boards.board import Board
from powerlab.domain.power import Availability, Rail, SourceProbe, TotalFormula

ESTIMATE_SOURCE = "estimate"
METER_SOURCE = "meter"
STAND_INS = ("tegrastats", "jtop")
"""Programs that tell the same rails as the files do, to users who may not read the files."""

_PACKAGE = re.compile(r"package-\d+(-die-\d+)?")
_MEMORY = re.compile(r"(package-\d+(-die-\d+)?/)?dram")
_INPUT_RAILS = ("VDD_IN", "POM_5V_IN")
_MODULE_SOURCES = ("ina3221", "ina238", *STAND_INS)


def choose_total(probes: Sequence[SourceProbe], board: Board | None) -> TotalFormula | None:
    """Return the formula of the device's power, None where no rail can be read.

    A wall meter that somebody connected and configured comes first: it sees all there is. Then the board's own formula
    holds where every one of its rails can be read. Where some can, they are proposed, and the
    scope says what is missing; where none can, that source is not guessed with, for its other rails may lie inside each
    other or on the carrier board. For an unknown board a formula is proposed from what is there, and marked so.
    Measured and estimated rails are never added.
    """
    rails = [rail for probe in probes if probe.availability is Availability.AVAILABLE for rail in probe.rails]
    sensors = [rail for rail in rails if rail.source != ESTIMATE_SOURCE]
    if formula := _wall_meter(probes):
        return formula
    if board is not None and board.total is not None:
        own = _expanded(board.total, sensors)
        if _holds(own, sensors):
            return own
        if formula := _stood_in_for(own, sensors) or _remains(own, sensors):
            return formula
        sources = {key.partition(":")[0] for key in own.rails}
        sensors = [rail for rail in sensors if rail.source not in sources]
    for propose in _PROPOSALS:
        if formula := propose(sensors):
            return _warned(formula, probes)
    estimates = tuple(rail.key for rail in rails if rail.source == ESTIMATE_SOURCE)
    if estimates:
        return TotalFormula(
            rails=estimates, scope="processor and memory of the host, estimated: nothing is measured", proposed=True
        )
    return None


def _wall_meter(probes: Iterable[SourceProbe]) -> TotalFormula | None:
    for probe in probes:
        if probe.source == METER_SOURCE and probe.availability is Availability.AVAILABLE:
            return TotalFormula(
                rails=tuple(rail.key for rail in probe.rails),
                scope=f"the external meter at {probe.detail}",
            )
    return None


def _expanded(formula: TotalFormula, rails: Sequence[Rail]) -> TotalFormula:
    """Put the names of the rails that are there in the place of one that ends in ``*``."""
    keys: list[str] = []
    for key in formula.rails:
        found = [rail.key for rail in rails if key.endswith("*") and rail.key.startswith(key[:-1])]
        keys += found or [key]
    return replace(formula, rails=tuple(keys))


def _stood_in_for(formula: TotalFormula, rails: Sequence[Rail]) -> TotalFormula | None:
    """Return the same formula over another source that reads the same rails by the same names, where one has all."""
    for source in STAND_INS:
        twin = replace(formula, rails=tuple(f"{source}:{key.partition(':')[2]}" for key in formula.rails))
        if _holds(twin, rails):
            return replace(twin, scope=f"{formula.scope}; as {source} tells it")
    return None


def _warned(formula: TotalFormula, probes: Iterable[SourceProbe]) -> TotalFormula:
    """Say in the scope where a source has more rails than this user may read: one of them may be missing."""
    sources = {key.partition(":")[0] for key in formula.rails}
    denied = [probe.detail for probe in probes if probe.source in sources and probe.rails and probe.remedy]
    return replace(formula, scope="; ".join([formula.scope, *(f"perhaps too low: {detail}" for detail in denied)]))


def _holds(formula: TotalFormula, rails: Iterable[Rail]) -> bool:
    """Tell whether every rail of a formula is there and all have one provenance."""
    found = {rail.key: rail.provenance for rail in rails}
    return set(formula.rails) <= set(found) and len({found[key] for key in formula.rails}) == 1


def _remains(formula: TotalFormula, rails: Iterable[Rail]) -> TotalFormula | None:
    """Return what is left of a board's formula where some of its rails cannot be read."""
    found = [rail for rail in rails if rail.key in formula.rails]
    missing = sorted(set(formula.rails) - {rail.key for rail in found})
    names = ", ".join(key.partition(":")[2] for key in missing)
    return _proposed(found, f"{formula.scope}; too low, because {names} cannot be read")


def _proposed(rails: Sequence[Rail], scope: str) -> TotalFormula | None:
    """Return a proposed formula over rails of one provenance, None for no rails."""
    formula = TotalFormula(rails=tuple(rail.key for rail in rails), scope=scope, proposed=True)
    return formula if rails and _holds(formula, rails) else None


def _named(rails: Iterable[Rail], source: str, pattern: str | re.Pattern[str]) -> list[Rail]:
    return [rail for rail in rails if rail.source == source and re.fullmatch(pattern, rail.name)]


def _rapl(rails: Sequence[Rail]) -> TotalFormula | None:
    """Packages and their memory. psys already holds the packages, core and uncore lie inside them: never added."""
    packages = _named(rails, "rapl", _PACKAGE)
    memory = _named(rails, "rapl", _MEMORY)
    if packages:
        what = "processor packages and memory" if memory else "processor packages, without memory"
        return _proposed([*packages, *memory], f"{what}; without graphics cards, disks, fans and supply losses")
    return _proposed(_named(rails, "rapl", "psys"), "the platform as its firmware counts it (psys)")


def _board_input(rails: Sequence[Rail]) -> TotalFormula | None:
    """The one rail that feeds all others, as many Jetson modules have it."""
    for source in _MODULE_SOURCES:
        for name in _INPUT_RAILS:
            if found := _named(rails, source, name):
                return _proposed(found, f"the module's input rail {name}, without the carrier board")
    return None


def _module_sum(rails: Sequence[Rail]) -> TotalFormula | None:
    for source in _MODULE_SOURCES:
        found = [rail for rail in rails if rail.source == source]
        scope = f"the sum of all {len(found)} rails found; a rail that feeds another is counted twice"
        if formula := _proposed(found, scope):
            return formula
    return None


def _sockets(rails: Sequence[Rail]) -> TotalFormula | None:
    """NVIDIA Grace: the module's meters, else those of the processor with its memory."""
    for title, scope in (
        ("Module Power", "the modules with processor, memory and graphics, without the rest of the server"),
        ("Grace Power", "the Grace processors with their memory, without graphics and the rest of the server"),
    ):
        if found := _named(rails, "hwmon", rf"{title} Socket \d+( @.*)?"):
            return _proposed(found, scope)
    return None


def _arm_server(rails: Sequence[Rail]) -> TotalFormula | None:
    """X-Gene and Altra: processor and I/O power, else the cores' energy counters."""
    if found := _named(rails, "hwmon", r"(CPU power|IO power)( @.*)?"):
        return _proposed(found, "the processor with its I/O, without memory modules, disks, fans and supply losses")
    return _proposed(_named(rails, "hwmon", r"Core Energy \d+( @.*)?"), "the processor's cores alone")


def _whole_machine(rails: Sequence[Rail]) -> TotalFormula | None:
    """What a power meter or the power supplies say the machine takes."""
    if found := _named(rails, "hwmon", r"power_meter( power\d+)?( @.*)?"):
        return _proposed(found, "the whole machine as its firmware's power meter counts it")
    return _proposed(
        _named(rails, "hwmon", r".*\bpin\d*( @.*)?"), "the whole machine at the inputs of its power supplies"
    )


def _battery(rails: Sequence[Rail]) -> TotalFormula | None:
    scope = "the whole machine as its batteries feed it, screen and losses included"
    return _proposed([rail for rail in rails if rail.source == "battery"], scope)


def _management_controller(rails: Sequence[Rail]) -> TotalFormula | None:
    scope = "the whole machine as its management controller counts it (IPMI DCMI)"
    return _proposed([rail for rail in rails if rail.source == "ipmi"], scope)


_PROPOSALS: tuple[Callable[[Sequence[Rail]], TotalFormula | None], ...] = (
    _board_input,
    _module_sum,
    _rapl,
    _sockets,
    _arm_server,
    _whole_machine,
    _management_controller,
    _battery,
)
"""Tried in this order. A graphics card alone is never a total: the processor's share would be missing."""
