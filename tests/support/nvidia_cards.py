"""Trees with NVIDIA cards that stand still: the library of the simulator over files that a test writes itself."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from powerlab.boards.simulator.parts.nvml import LIBRARY, fake_library
from powerlab.sysroot import SIMULATION_MARKER, Sysroot

DIRECTORY = "/simulation/nvml"
CARD: Mapping[str, object] = {
    "name": "Test Card",
    "uuid": "GPU-00000000-0000-4000-8000-000000000000",
    "energy_mj": 5_000_000,
    "power_instant_mw": 123_000,
    "power_average_mw": 98_000,
    "power_limit_mw": 200_000,
    "power_limit_default_mw": 230_000,
    "power_limit_min_mw": 100_000,
    "power_limit_max_mw": 250_000,
    "clock_graphics_mhz": 210,
    "clock_memory_mhz": 405,
    "max_clock_graphics_mhz": 1200,
    "max_clock_memory_mhz": 8001,
    "supported_graphics_clocks_mhz": "300 600 900 1200",
    "supported_memory_clocks_mhz": "405 8001",
    "locked_clocks_mhz": "unlocked",
    "clocks_event_reasons": 1,
    "violation_power_ns": 0,
    "violation_thermal_ns": 0,
    "temperature_c": 41,
    "utilisation_percent": 7,
}
"""A card that knows everything."""


def without(*names: str, card: Mapping[str, object] = CARD) -> dict[str, object]:
    """A card that lacks some metrics."""
    return {name: value for name, value in card.items() if name not in names}


SILENT = {"name": "NVIDIA Tegra Orin (nvgpu)"}
"""As on a Jetson: NVML starts, and every query answers "not supported"."""


def write_cards(base: Path, cards: Sequence[Mapping[str, object]] = (CARD,), **library: object) -> Sysroot:
    """Write a simulated tree with these cards; ``library`` are files of the library itself, ``init_error`` for one."""
    sysroot = Sysroot(base)
    files = {SIMULATION_MARKER: '{"board": "none", "jetpack": null}'}
    files |= {f"{DIRECTORY}/{name}": str(value) for name, value in library.items()}
    for index, card in enumerate(cards):
        files |= {f"{DIRECTORY}/gpu{index}/{name}": str(value) for name, value in card.items()}
    sysroot.path(DIRECTORY).mkdir(parents=True)
    for path, text in files.items():
        sysroot.path(path).parent.mkdir(parents=True, exist_ok=True)
        sysroot.path(path).write_text(f"{text}\n")
    target = sysroot.path(LIBRARY)
    target.parent.mkdir(parents=True)
    shutil.copy(fake_library(), target)
    return sysroot


def put(sysroot: Sysroot, name: str, value: object, index: int = 0) -> None:
    """Change one file of a card."""
    sysroot.path(f"{DIRECTORY}/gpu{index}/{name}").write_text(f"{value}\n")


def get(sysroot: Sysroot, name: str, index: int = 0) -> str:
    """Return one file of a card."""
    return sysroot.read(f"{DIRECTORY}/gpu{index}/{name}")
