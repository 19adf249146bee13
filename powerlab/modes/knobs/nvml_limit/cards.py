"""Limits of NVIDIA cards: one reading of all that the knob ``nvml_limit`` needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from powerlab.domain.errors import PowerlabError
from powerlab.nvml_library import Library, NvmlError, compute_capability

_AMPERE = (8, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One card; what it does not give is None, or empty.

    Attributes:
        index: its number.
        uuid: the name by which it is known for good; its number where it has none.
        energy_mj: its energy counter in mJ; 0 without one.
        limit_mw: its power limit now, in mW; ``low_mw`` to ``high_mw`` can be set, ``default_mw`` is the maker's.
        clocks_mhz: the clocks its processor can be locked to in MHz, ascending.
        memory_clocks_mhz: those of its memory.
    """

    index: int
    uuid: str
    energy_mj: int = 0
    limit_mw: int | None = None
    low_mw: int = 0
    high_mw: int = 0
    default_mw: int = 0
    clocks_mhz: tuple[int, ...] = ()
    memory_clocks_mhz: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """``GPU0``."""
        return f"GPU{self.index}"

    def check_limit(self, limit_mw: int) -> None:
        """Raise PowerlabError with the range where the card does not take a power limit in mW."""
        if self.limit_mw is None:
            raise PowerlabError(f"{self.name} does not let its power be limited; leave it out.")
        if not self.low_mw <= limit_mw <= self.high_mw:
            raise PowerlabError(
                f"{self.name} takes no power limit of {watts(limit_mw)} W; choose one from {watts(self.low_mw)} to"
                f" {watts(self.high_mw)} W."
            )

    def check_clock(self, clock_mhz: int, of_memory: bool = False) -> None:
        """Raise PowerlabError with the nearest clocks where the card has none of that many MHz.

        It would quietly run at a clock next to it, and the name of the mode would be wrong.
        """
        what, clocks = ("memory clock", self.memory_clocks_mhz) if of_memory else ("clock", self.clocks_mhz)
        if not clocks:
            raise PowerlabError(f"{self.name} does not let its {what}s be locked; leave it out.")
        if clock_mhz not in clocks:
            nearest = sorted(sorted(clocks, key=lambda clock: abs(clock - clock_mhz))[:2])
            raise PowerlabError(
                f"{self.name} has no {what} of {clock_mhz} MHz; it has {clocks[0]} to"
                f" {clocks[-1]} MHz, nearest {' and '.join(map(str, nearest))}."
            )


def watts(milliwatts: int) -> str:
    """Return milliwatts as watts, without zeros that say nothing: ``200``, ``172.5``."""
    return f"{milliwatts / 1000:.10g}"


def read_cards(library: Library) -> tuple[Card, ...]:
    """Return every card; the library is started.

    Raises:
        NvmlError: the cards cannot be counted.
    """
    return tuple(_read_card(library, index) for index in library.devices())


def _read_card(library: Library, index: int) -> Card:
    uuid = _asked(library, index, "nvmlDeviceGetUUID", f"GPU{index}")
    low_mw, high_mw = _asked(library, index, "nvmlDeviceGetPowerManagementLimitConstraints", (0, 0))
    limit_mw = _asked(library, index, "nvmlDeviceGetPowerManagementLimit", None)
    return Card(
        index=index,
        uuid=uuid.decode(errors="replace") if isinstance(uuid, bytes) else str(uuid),
        energy_mj=int(_asked(library, index, "nvmlDeviceGetTotalEnergyConsumption", 0)),
        limit_mw=limit_mw if high_mw else None,
        low_mw=low_mw,
        high_mw=high_mw,
        default_mw=_asked(library, index, "nvmlDeviceGetPowerManagementDefaultLimit", high_mw),
        clocks_mhz=_clocks_mhz(library, index),
        memory_clocks_mhz=_memory_clocks_mhz(library, index),
    )


def _clocks_mhz(library: Library, index: int) -> tuple[int, ...]:
    """Return the clocks at the memory's highest clock, the one it works at."""
    memory_mhz = _asked(library, index, "nvmlDeviceGetSupportedMemoryClocks", [])
    if not memory_mhz:
        return ()
    graphics_mhz = _asked(library, index, "nvmlDeviceGetSupportedGraphicsClocks", [], max(memory_mhz))
    return tuple(sorted(graphics_mhz))


def _memory_clocks_mhz(library: Library, index: int) -> tuple[int, ...]:
    """Return the memory's clocks where they can be locked: from Ampere on (nvmlDeviceSetMemoryLockedClocks)."""
    capability = compute_capability(library, index)
    if capability is None or capability < _AMPERE:
        return ()
    return tuple(sorted(_asked(library, index, "nvmlDeviceGetSupportedMemoryClocks", [])))


def _asked(library: Library, index: int, function: str, otherwise: Any, *arguments: Any) -> Any:
    """Ask a card; cards differ in what they support, so an error is an answer."""
    try:
        return library.ask(function, library.device(index), *arguments)
    except NvmlError:
        return otherwise
