"""Proposed totals for machines without a description, best first.

A proposal is a function from the rails that are there to a formula and one line in :data:`PROPOSALS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from powerlab.domain.power import CARD_SOURCES, CARDS_ALONE, WITHOUT_CARDS, Rail, TotalFormula

STAND_INS = ("tegrastats", "jtop")
"""Programs that tell the same rails as the files do, to users who may not read the files."""

_PACKAGE = re.compile(r"package-\d+(-die-\d+)?")
_MEMORY = re.compile(r"(package-\d+(-die-\d+)?/)?dram")
_INPUT_RAILS = ("VDD_IN", "POM_5V_IN", "VIN")
_CARD = re.compile(r"GPU\d+")
"""The best figure of a card; what else a card gives is the same power again, or a part of it."""
_MODULE_SOURCES = ("ina3221", "ina238", *STAND_INS)


def of_one_provenance(formula: TotalFormula, rails: Iterable[Rail]) -> bool:
    """Tell whether every rail of a formula is there and all have one provenance."""
    found = {rail.key: rail.provenance for rail in rails}
    return set(formula.rails) <= set(found) and len({found[key] for key in formula.rails}) == 1


def proposed(rails: Sequence[Rail], scope: str) -> TotalFormula | None:
    """Return a proposed formula over rails of one provenance, None for no rails."""
    formula = TotalFormula(rails=tuple(rail.key for rail in rails), scope=scope, proposed=True)
    return formula if rails and of_one_provenance(formula, rails) else None


def _named(rails: Iterable[Rail], source: str, pattern: str | re.Pattern[str]) -> list[Rail]:
    return [rail for rail in rails if rail.source == source and re.fullmatch(pattern, rail.name)]


def _rapl(rails: Sequence[Rail]) -> TotalFormula | None:
    """Packages and their memory. psys already holds the packages, core and uncore lie inside them: never added."""
    packages = _named(rails, "rapl", _PACKAGE)
    memory = _named(rails, "rapl", _MEMORY)
    if packages:
        what = "processor packages and memory" if memory else "processor packages, without memory"
        return _with_cards([*packages, *memory], what, rails)
    if platform := _named(rails, "rapl", "psys"):
        return proposed(platform, "the platform as its firmware counts it (psys)")
    # The sockets' counters of the driver amd_energy, which also has one for each core inside them.
    sockets = _named(rails, "hwmon", r"amd_energy Esocket\d+( @.*)?")
    return _with_cards(sockets, "processor packages, without memory", rails)


def _with_cards(host: Sequence[Rail], what: str, rails: Sequence[Rail]) -> TotalFormula | None:
    """Return the host's rails and the boards of its graphics cards, as far as their power can be read."""
    boards = card_rails(rails)
    if not host or not boards:
        return proposed(host, f"{what}; {WITHOUT_CARDS}, disks, fans and supply losses")
    count = "a graphics card" if len(boards) == 1 else f"{len(boards)} graphics cards"
    return proposed([*host, *boards], f"{what}, and {count}; without disks, fans and supply losses")


def card_rails(rails: Iterable[Rail]) -> list[Rail]:
    """Return the power or energy of each graphics card's whole board, once."""
    return [rail for rail in rails if rail.source in CARD_SOURCES and _CARD.fullmatch(rail.name)]


def cards_alone(rails: Iterable[Rail]) -> TotalFormula | None:
    """Return the graphics cards by themselves, for runs that compute on nothing else."""
    return proposed(card_rails(rails), f"{CARDS_ALONE}, as their own sensors say; without the rest of the machine")


def _board_input(rails: Sequence[Rail]) -> TotalFormula | None:
    """The one rail that feeds all others, as many Jetson modules have it."""
    for source in _MODULE_SOURCES:
        for name in _INPUT_RAILS:
            if found := _named(rails, source, name):
                return proposed(found, f"the module's input rail {name}, without the carrier board")
    return None


def _module_sum(rails: Sequence[Rail]) -> TotalFormula | None:
    """Jetson modules without an input rail; their monitors watch nothing but the module."""
    for source in ("ina3221", *STAND_INS):
        if formula := _sum_of_all(rails, source):
            return formula
    return None


def _monitor_sum(rails: Sequence[Rail]) -> TotalFormula | None:
    """Monitors of any board: they may watch anything, so everything that says more comes first."""
    return _sum_of_all(rails, "ina238")


def _sum_of_all(rails: Sequence[Rail], source: str) -> TotalFormula | None:
    found = [rail for rail in rails if rail.source == source]
    return proposed(found, f"the sum of all {len(found)} rails found; a rail that feeds another is counted twice")


def _sockets(rails: Sequence[Rail]) -> TotalFormula | None:
    """NVIDIA Grace: the module's meters, else those of the processor with its memory."""
    for title, scope in (
        ("Module Power", "the modules with processor, memory and graphics, without the rest of the server"),
        ("Grace Power", f"the Grace processors with their memory, {WITHOUT_CARDS} and the rest of the server"),
    ):
        if found := _named(rails, "hwmon", rf"{title} Socket \d+( @.*)?"):
            return proposed(found, scope)
    return None


def _arm_server(rails: Sequence[Rail]) -> TotalFormula | None:
    """X-Gene and Altra: processor and I/O power, else the cores' energy counters."""
    if found := _named(rails, "hwmon", r"(CPU power|IO power)( @.*)?"):
        return proposed(
            found, f"the processor with its I/O, {WITHOUT_CARDS}, memory modules, disks, fans and supply losses"
        )
    return proposed(
        _named(rails, "hwmon", r"Core Energy \d+( @.*)?"), f"the processor's cores alone, {WITHOUT_CARDS} and all else"
    )


def _whole_machine(rails: Sequence[Rail]) -> TotalFormula | None:
    """What a power meter or the power supplies say the machine takes."""
    if found := _named(rails, "hwmon", r"power_meter( power\d+)?( @.*)?"):
        return proposed(found, "the whole machine as its firmware's power meter counts it")
    if found := _named(rails, "hwmon", r"macsmc_hwmon Total System Power( @.*)?"):
        return proposed(found, "the whole machine as its system controller counts it")
    if found := _named(rails, "hwmon", r".*\bpin\d*( @.*)?"):
        return proposed(found, "the whole machine at the inputs of its power supplies")
    found = _named(rails, "hwmon", r"corsairpsu power total( @.*)?")
    return proposed(found, "all outputs of the power supply; its own losses are missing")


def _battery(rails: Sequence[Rail]) -> TotalFormula | None:
    scope = "the whole machine as its batteries feed it, screen and losses included"
    return proposed([rail for rail in rails if rail.source == "battery"], scope)


def _management_controller(rails: Sequence[Rail]) -> TotalFormula | None:
    scope = "the whole machine as its management controller counts it (IPMI DCMI)"
    return proposed([rail for rail in rails if rail.source == "ipmi"], scope)


PROPOSALS: tuple[Callable[[Sequence[Rail]], TotalFormula | None], ...] = (
    _board_input,
    _module_sum,
    _rapl,
    _sockets,
    _arm_server,
    _whole_machine,
    _management_controller,
    _battery,
    _monitor_sum,
)
"""Tried in this order. Graphics cards alone are never a device's total: the processor's share
would be missing. Runs on nothing but a card may use :func:`cards_alone`."""
