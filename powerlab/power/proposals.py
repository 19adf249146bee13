"""Proposed totals for machines without a description, best first.

A proposal is a function from the rails that are there to a formula and one line in :data:`PROPOSALS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from powerlab.domain.power import Rail, TotalFormula

STAND_INS = ("tegrastats", "jtop")
"""Programs that tell the same rails as the files do, to users who may not read the files."""

_PACKAGE = re.compile(r"package-\d+(-die-\d+)?")
_MEMORY = re.compile(r"(package-\d+(-die-\d+)?/)?dram")
_INPUT_RAILS = ("VDD_IN", "POM_5V_IN", "VIN")
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
        return proposed([*packages, *memory], f"{what}; without graphics cards, disks, fans and supply losses")
    if platform := _named(rails, "rapl", "psys"):
        return proposed(platform, "the platform as its firmware counts it (psys)")
    # The sockets' counters of the driver amd_energy, which also has one for each core inside them.
    sockets = _named(rails, "hwmon", r"amd_energy Esocket\d+( @.*)?")
    return proposed(
        sockets, "processor packages, without memory; without graphics cards, disks, fans and supply losses"
    )


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
        ("Grace Power", "the Grace processors with their memory, without graphics and the rest of the server"),
    ):
        if found := _named(rails, "hwmon", rf"{title} Socket \d+( @.*)?"):
            return proposed(found, scope)
    return None


def _arm_server(rails: Sequence[Rail]) -> TotalFormula | None:
    """X-Gene and Altra: processor and I/O power, else the cores' energy counters."""
    if found := _named(rails, "hwmon", r"(CPU power|IO power)( @.*)?"):
        return proposed(found, "the processor with its I/O, without memory modules, disks, fans and supply losses")
    return proposed(_named(rails, "hwmon", r"Core Energy \d+( @.*)?"), "the processor's cores alone")


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
"""Tried in this order. A graphics card alone is never a total: the processor's share would be missing."""
