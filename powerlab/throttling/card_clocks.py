"""Clocks of graphics cards: NVIDIA's through NVML, AMD's as hwmon has them, Intel's as their drivers do.

Sources: NVIDIA's nvml.h; the kernel's gpu/amdgpu/thermal.rst (``freq1_input`` is the shader clock, ``freq2_input`` the
memory's, in Hz), drivers/gpu/drm/xe/xe_gt_freq.c and i915/gt/intel_gt_sysfs_pm.c (MHz).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from powerlab.modes.io.pci_cards import devices, one_file
from powerlab.nvml_library import Library, NvmlError
from powerlab.sysroot import Sysroot
from powerlab.throttling.reading import integer
from powerlab.throttling.shown_clock import ShownClock

_NVIDIA = ((0, "clock"), (2, "memory"))
"""nvml.h, nvmlClockType_t: NVML_CLOCK_GRAPHICS and NVML_CLOCK_MEM."""
_AMD = (("hwmon/hwmon*/freq1_input", "clock"), ("hwmon/hwmon*/freq2_input", "memory"))
_INTEL = (("xe", "tile0/gt0/freq0/{}_freq"), ("i915", "drm/card*/gt_{}_freq_mhz"))


def card_clocks(sysroot: Sysroot, cards: tuple[Library, range] | None) -> Iterator[ShownClock]:
    """Yield the clocks of all graphics cards; ``cards`` is NVIDIA's library, started, and the numbers of its cards."""
    if cards is not None:
        yield from _nvidia(*cards)
    for number, directory in enumerate(devices(sysroot, "amdgpu")):
        for pattern, word in _AMD:
            if path := one_file(sysroot, f"{directory}/{pattern}"):
                yield ShownClock(name=f"amdgpu GPU{number} {word}", read_mhz=partial(_mhz, sysroot, (path,), 1e6))
    for driver, pattern in _INTEL:
        for number, directory in enumerate(devices(sysroot, driver)):
            yield from _intel(sysroot, f"{driver} GPU{number} clock", f"{directory}/{pattern}".format)


def _intel(sysroot: Sysroot, name: str, path_of: Callable[[str], str]) -> Iterator[ShownClock]:
    # At rest the actual clock is 0: the clock is off. What was last asked for says more.
    paths = [path for kind in ("act", "cur") if (path := one_file(sysroot, path_of(kind)))]
    if paths:
        limit = one_file(sysroot, path_of("max"))
        limit_mhz = None if limit is None else integer(sysroot, limit)
        yield ShownClock(name=name, read_mhz=partial(_mhz, sysroot, tuple(paths), 1), limit_mhz=limit_mhz)


def _mhz(sysroot: Sysroot, paths: tuple[str, ...], unit: float) -> float | None:
    return next((value / unit for path in paths if (value := integer(sysroot, path))), None)


def _nvidia(library: Library, cards: range) -> Iterator[ShownClock]:
    for index in cards:
        for kind, word in _NVIDIA:
            yield ShownClock(
                name=f"GPU{index} {word}",
                read_mhz=partial(_nvidia_mhz, library, "nvmlDeviceGetClockInfo", index, kind),
                limit_mhz=_nvidia_mhz(library, "nvmlDeviceGetMaxClockInfo", index, kind),
            )


def _nvidia_mhz(library: Library, function: str, index: int, kind: int) -> float | None:
    """Return a card's clock; cards differ in what they tell, and one may be gone."""
    try:
        return float(library.ask(function, library.device(index), kind))
    except NvmlError:
        return None
