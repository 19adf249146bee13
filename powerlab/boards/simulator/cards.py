"""What a simulated graphics card does with its load, its power limit and its locked clocks: pure functions and data.

A card draws a constant part and, while it computes, k·V²·f of its clock. Up to half of the highest clock the voltage is
at its least, so the power goes with the clock; above it goes with the clock's cube (the shape of the board's own model,
see :mod:`powerlab.boards.simulator.physics`). A card at its power limit lowers its clock until it draws what it may. A
fifth of what changes goes with the memory's clock. An inference takes the time of its launch, of its arithmetic at the
card's clock and of its bytes at the memory's. All coefficients are chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from powerlab.boards.simulator.physics import Work
from powerlab.boards.simulator.state import BusyGpu

REASON_IDLE, REASON_POWER_CAP, REASON_SLOWDOWN, REASON_POWER_BRAKE = 0x1, 0x4, 0x8, 0x80
"""NVML's bits for why clocks are not at their highest (nvml.h, nvmlClocksEventReasons)."""
_FLAT_BELOW = 0.5
_WAITING_SHARE = 0.05
"""What a card draws of its changing part at a locked clock when it has nothing to compute."""
_MEMORY_SHARE = 0.2
"""What the memory draws of the changing part at its highest clock."""
_CALL_S = 0.0003
"""What launching a network costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One card.

    Attributes:
        number: as its library or driver counts.
        name: as the driver gives it.
        rail: its rail among the board's.
        base_w: what it draws at rest; ``changing_w`` comes on top at full load and the highest clock.
        low_w: the least power limit it takes, ``high_w`` the greatest, ``default_w`` the maker's.
        clocks_mhz: the clocks its processor can run at, ascending.
        memory_clocks_mhz: those of its memory, ascending.
        tflops: float32 operations a second that networks sustain at its highest clock, in 10¹².
        memory_gb_per_s: what they get from its memory at its highest clock.
        memory_mib: its memory.
        uuid: of an NVIDIA card.
        compute_capability: of CUDA, times ten.
        part_time: whether its energy counter adds up what the sensor saw, and nothing of what it did not.
    """

    number: int
    name: str
    rail: str
    base_w: float
    changing_w: float
    low_w: float
    high_w: float
    default_w: float
    clocks_mhz: tuple[int, ...]
    memory_clocks_mhz: tuple[int, ...]
    tflops: float
    memory_gb_per_s: float
    memory_mib: int
    uuid: str = ""
    compute_capability: int = 86
    part_time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a card is asked for: its load (0 to 1), its limit, and what its clocks are locked to, None where nothing."""

    load: float = 0.0
    limit_w: float
    locked_mhz: tuple[int, int] | None = None
    memory_mhz: tuple[int, int] | None = None
    braked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingPoint:
    """What a card makes of it: the share of its changing power, its clocks, and NVML's reasons for the first."""

    share: float
    clock_mhz: int
    memory_mhz: int
    reasons: int


def card_of(number: int, table: Mapping[str, Any], power: Mapping[str, Sequence[float]]) -> Card:
    """Return a card from its table and the board's power model; ``clocks_mhz`` is the first, the last and the step."""
    first, last, step = table["clocks_mhz"]
    fields = {
        **table,
        "clocks_mhz": tuple(range(first, last + 1, step)),
        "memory_clocks_mhz": tuple(table["memory_clocks_mhz"]),
    }
    return Card(number=number, base_w=power["gpu_base_w"][number], changing_w=power["gpu_w_at_max"][number], **fields)


def first_card(simulation: Mapping[str, Any]) -> Card | None:
    """Return the card that computes on a board; None where it has none."""
    tables = [table["cards"][0] for name in ("nvml", "amdgpu", "intel_gpu") if (table := simulation.get(name))]
    return card_of(0, tables[0], simulation["power"]) if tables else None


def working_point(card: Card, demand: Demand) -> WorkingPoint:
    """Return where a card settles."""
    low_mhz, top_mhz = demand.locked_mhz or (card.clocks_mhz[0], card.clocks_mhz[-1])
    memory_low_mhz, memory_top_mhz = demand.memory_mhz or (card.memory_clocks_mhz[0], card.memory_clocks_mhz[-1])
    reasons = 0
    if demand.braked:
        top_mhz, reasons = _not_above(card, top_mhz / 2), REASON_POWER_BRAKE | REASON_SLOWDOWN
    if demand.load <= 0.0:
        share = _WAITING_SHARE * relative_power(low_mhz / card.clocks_mhz[-1]) if demand.locked_mhz else 0.0
        return WorkingPoint(
            share=share, clock_mhz=min(low_mhz, top_mhz), memory_mhz=memory_low_mhz, reasons=reasons | REASON_IDLE
        )
    of_memory = 1.0 - _MEMORY_SHARE * (1.0 - memory_top_mhz / card.memory_clocks_mhz[-1])
    switching = demand.load * of_memory
    allowed = max(0.0, (demand.limit_w - card.base_w) / card.changing_w)
    share = switching * relative_power(top_mhz / card.clocks_mhz[-1])
    if share > allowed:
        top_mhz = _not_above(card, relative_clock(allowed / switching) * card.clocks_mhz[-1])
        share = switching * relative_power(top_mhz / card.clocks_mhz[-1])
        reasons |= REASON_POWER_CAP
    return WorkingPoint(share=share, clock_mhz=top_mhz, memory_mhz=memory_top_mhz, reasons=reasons)


def busy_caps(card: Card, point: WorkingPoint) -> dict[str, float]:
    """Return what a card does under full load as a part tells it (:meth:`Part.caps`): see :class:`BusyGpu`."""
    return {
        "gpu0.power": point.share,
        "gpu0.clock": point.clock_mhz / card.clocks_mhz[-1],
        "gpu0.memory": point.memory_mhz / card.memory_clocks_mhz[-1],
    }


def inference_s(card: Card, gpu: BusyGpu, work: Work) -> float:
    """Return how long a card takes for some work, in s."""
    compute_s = work.flops / (card.tflops * 1e12 * gpu.clock)
    memory_s = work.bytes_moved / (card.memory_gb_per_s * 1e9 * gpu.memory)
    return work.calls * _CALL_S + compute_s + memory_s


def relative_power(clock: float) -> float:
    """Return the changing power at a clock, both as shares of the highest."""
    return clock**3 if clock >= _FLAT_BELOW else clock * _FLAT_BELOW**2


def relative_clock(power: float) -> float:
    """Return the clock for a changing power, the reverse of :func:`relative_power`."""
    return power ** (1 / 3) if power >= _FLAT_BELOW**3 else power / _FLAT_BELOW**2


def _not_above(card: Card, clock_mhz: float) -> int:
    """Return the card's highest clock not above a wished one, its lowest where there is none."""
    # The clock that belongs to a power is a root, which may lie a rounding error below a clock of the table.
    return max((clock for clock in card.clocks_mhz if clock <= clock_mhz + 1e-6), default=card.clocks_mhz[0])
