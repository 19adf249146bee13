"""The files a simulated NVIDIA card answers from: ``/simulation/nvml/gpu0/power_instant_mw`` holds one value."""

from __future__ import annotations

from powerlab.boards.simulator.cards import REASON_IDLE, Card
from powerlab.boards.simulator.warmth import ROOM_C

DIRECTORY = "/simulation/nvml"
UNLOCKED = "unlocked"


def path_of(card: Card, name: str) -> str:
    """Return where one of a card's files lies."""
    return f"{DIRECTORY}/gpu{card.number}/{name}"


def fixed_files(card: Card) -> dict[str, object]:
    """Return what of a card does not move by itself, by file."""
    return {
        "name": card.name,
        "uuid": card.uuid,
        "compute_capability": card.compute_capability,
        "memory_mib": card.memory_mib,
        "load": "0.00",
        "power_limit_mw": round(card.default_w * 1000),
        "power_limit_default_mw": round(card.default_w * 1000),
        "power_limit_min_mw": round(card.low_w * 1000),
        "power_limit_max_mw": round(card.high_w * 1000),
        "locked_clocks_mhz": UNLOCKED,
        "locked_memory_clocks_mhz": UNLOCKED,
        "supported_graphics_clocks_mhz": " ".join(map(str, card.clocks_mhz)),
        "supported_memory_clocks_mhz": " ".join(map(str, card.memory_clocks_mhz)),
        "max_clock_graphics_mhz": card.clocks_mhz[-1],
        "max_clock_memory_mhz": card.memory_clocks_mhz[-1],
        "violation_thermal_ns": 0,
    }


def resting_values(card: Card, energy_mj: int) -> dict[str, int]:
    """Return what of a card moves, as it is at rest, by file."""
    return {
        "power_instant_mw": round(card.base_w * 1000),
        "power_average_mw": round(card.base_w * 1000),
        "energy_mj": energy_mj,
        "clock_graphics_mhz": card.clocks_mhz[0],
        "clock_memory_mhz": card.memory_clocks_mhz[0],
        "clocks_event_reasons": REASON_IDLE,
        "violation_power_ns": 0,
        "temperature_c": round(ROOM_C),
        "utilisation_percent": 0,
    }


def parse_lock(text: str) -> tuple[int, int] | None:
    """Return the clocks in MHz between which a card is locked, None where it is not.

    Raises:
        ValueError: the text is neither.
    """
    if text == UNLOCKED:
        return None
    low, _, high = text.partition("-")
    return int(low), int(high)
