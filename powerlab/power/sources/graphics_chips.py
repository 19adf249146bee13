"""Graphics cards among the hwmon chips: found by their driver, numbered by their place on the PCI bus."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.power.sources.hwmon.chip import HwmonChip, find_chips
from powerlab.power.sources.scan import read_integer
from powerlab.sysroot import Sysroot

DRIVERS = ("amdgpu", "i915", "xe")
"""Names of chips that sources of their own read, so that ``hwmon`` leaves them out; ``i915_gt0`` is a part of one."""


def cards(sysroot: Sysroot, drivers: tuple[str, ...]) -> Iterator[tuple[str, HwmonChip]]:
    """Yield ``GPU0``, ``GPU1``... with the chip of each card of some drivers."""
    for number, chip in enumerate(chip for chip in find_chips(sysroot) if chip.name in drivers):
        yield f"GPU{number}", chip


def has(sysroot: Sysroot, chip: HwmonChip, file: str) -> bool:
    """Tell whether a chip has a file that holds a number."""
    return read_integer(sysroot, f"{chip.directory}/{file}") is not None
