"""Power sources, their rails, and the traces sampled from them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from powerlab.domain.quantity import Provenance

if TYPE_CHECKING:  # an idle agent knows these words, and has no room for numpy
    import numpy as np
    from numpy.typing import NDArray


class Availability(StrEnum):
    """What a probe found. Absence is a state to show, not an error, and never 0 W."""

    AVAILABLE = "available"
    ABSENT = "absent"
    DENIED = "denied"
    BROKEN = "broken"


class RailQuantity(StrEnum):
    """What values are: power in W, a cumulative energy counter in J, and what is recorded beside them.

    ``latency`` holds a query's latency in s at the time it was issued, ``temperature`` a zone's in °C, ``clock`` that
    of a processor or memory in MHz.
    """

    POWER = "power"
    ENERGY = "energy"
    LATENCY = "latency"
    TEMPERATURE = "temperature"
    CLOCK = "clock"


POWER_QUANTITIES = (RailQuantity.POWER, RailQuantity.ENERGY)
"""What can be added up to a board's power."""


class Part(StrEnum):
    """Which part of a run a trace was recorded in."""

    RUN = "run"
    IDLE_BEFORE = "idle-before"
    IDLE_AFTER = "idle-after"
    COOL_DOWN = "cool-down"
    WARM_UP = "warm-up"


IDLE_PARTS = (Part.IDLE_BEFORE, Part.IDLE_AFTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rail:
    """One thing a source can read.

    Attributes:
        source: the source's name in the registry, for example ``ina3221``.
        name: the rail's name on its board, for example ``VDD_CPU_CV``; unique within its source.
        quantity: power (W) or energy (J).
        resolution: the step of one reading, in W or J; 0 where unknown.
        relative_error: the stated gain error as a fraction (0.01 is 1 %), taken as the half-width of a rectangle.
        update_period_s: how often the value changes; 0 where every read is fresh.
        provenance: measured, estimated or simulated.
        offset: bound of a constant error of all readings, in W or J; 0 where none is stated.
        lag_s: how old what a reading says is on average when it is read, as a step of the load showed.
        lag_error_s: standard uncertainty of that; 0 where nobody calibrated it, and the lag may be any from none to
            one and a half update periods.
        seen_share: the share of each update period that the sensor looks at; it is blind for the rest.
    """

    source: str
    name: str
    quantity: RailQuantity
    resolution: float
    relative_error: float
    update_period_s: float
    provenance: Provenance
    offset: float = 0.0
    lag_s: float = 0.0
    lag_error_s: float = 0.0
    seen_share: float = 1.0

    @property
    def key(self) -> str:
        """``source:name``, unique on a device."""
        return f"{self.source}:{self.name}"


TOO_LOW = "too low, because"
"""In a formula's scope: rails that belong to the board's power cannot be read."""
WITHOUT_CARDS = "without graphics cards"
CARDS_ALONE = "graphics cards alone"
CARD_SOURCES = ("nvml", "amdgpu", "intel_gpu")
"""Sources of graphics cards' power."""
"""In a formula's scope: what the power of a run on a graphics card, or on the cores, would lack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalFormula:
    """Which rails, added up, are the board's power; stored with every result.

    Attributes:
        rails: keys of the rails that are added.
        scope: what the sum covers and leaves out, in words ("module rails, without the carrier board").
        proposed: True where powerlab guessed the formula for a board it does not know.
    """

    rails: tuple[str, ...]
    scope: str
    proposed: bool = False

    @property
    def too_low(self) -> bool:
        """Whether rails are missing from the sum."""
        return TOO_LOW in self.scope

    @property
    def lacks_cards(self) -> bool:
        """Whether what a graphics card draws is not in the sum."""
        return WITHOUT_CARDS in self.scope

    @property
    def lacks_host(self) -> bool:
        """Whether what the processor draws is not in the sum."""
        return CARDS_ALONE in self.scope


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceProbe:
    """What one source found on a device.

    Attributes:
        source: the source's name in the registry.
        availability: whether it can be read now.
        detail: one sentence on what was found.
        remedy: what to do about it, in words a newcomer can act on; empty where there is nothing to fix.
        rails: the rails it offers.
    """

    source: str
    availability: Availability
    detail: str
    remedy: str = ""
    rails: tuple[Rail, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """Samples of one rail.

    Attributes:
        rail: where the samples come from.
        time_ns: int64, shape (n,): CLOCK_MONOTONIC stamps, strictly increasing, half-way through each read.
        value: float64, shape (n,): W, or J of an unwrapped counter (never decreasing).
        read_cost_ns: median time one read took.
        part: which part of its run it was recorded in.
    """

    rail: Rail
    time_ns: NDArray[np.int64]
    value: NDArray[np.float64]
    read_cost_ns: int = 0
    part: Part = Part.RUN
