"""Graphics processors of a device: name, driver, memory, and which figures of power each offers.

NVIDIA's are found through NVML, AMD's and Intel's on the PCI bus (kernel, ABI/testing/sysfs-bus-pci), those of boards
like Jetson under devfreq. One whose power cannot be read is listed all the same: that is a state, and never 0 W.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from powerlab.domain.power import CARD_SOURCES, Rail, RailQuantity, SourceProbe
from powerlab.nvml_library import Library, NvmlError, NvmlUnavailableError, session
from powerlab.power.sources.graphics_chips import cards
from powerlab.sysroot import Sysroot

_VENDORS = {"0x1002": ("AMD", "amdgpu", ("amdgpu",)), "0x8086": ("Intel", "intel_gpu", ("i915", "xe"))}
"""By PCI vendor: its name, the source of its cards' power, and their drivers' hwmon chips."""
_CLASSES = ("0x03", "0x12")
"""Displays, and accelerators without one."""
_DEVFREQ = "/sys/class/devfreq"
_OF_BOARDS = re.compile(r"(?:[0-9a-f]{4,16}\.)?(gpu|gm20b|gp10b|gv11b|ga10b|gb10b|mali)\b.*")
_BOARD_RAIL = re.compile(r"(^|_)GPU(_|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One graphics processor.

    Attributes:
        name: the driver's name of it, or its maker and PCI identifier.
        driver: name and version; empty where no driver has it.
        memory_bytes: its own memory; None where it has none or nobody says.
        power: in words, which figures of power it offers and how good each is, the best one first.
    """

    name: str
    driver: str = ""
    memory_bytes: int | None = None
    power: tuple[str, ...] = ()


def graphics_processors(sysroot: Sysroot, probes: Sequence[SourceProbe] = ()) -> tuple[Gpu, ...]:
    """Return all that can be found; never raises.

    Args:
        sysroot: the device.
        probes: what its power sources offer; without them nothing is said of power.
    """
    rails = [rail for probe in probes for rail in probe.rails]
    return (*_nvidia(sysroot, rails), *_on_pci(sysroot, rails), *_on_board(sysroot, rails))


def _nvidia(sysroot: Sysroot, rails: Sequence[Rail]) -> Iterator[Gpu]:
    try:
        with session(sysroot) as library:
            driver = f"nvidia {library.text('nvmlSystemGetDriverVersion')}"
            for index in library.devices():
                yield Gpu(
                    name=library.text("nvmlDeviceGetName", library.device(index)),
                    driver=driver,
                    memory_bytes=_memory_bytes(library, index),
                    power=_power(rails, "nvml", f"GPU{index}"),
                )
    except (NvmlError, NvmlUnavailableError):
        return


def _memory_bytes(library: Library, index: int) -> int | None:
    try:
        return int(library.ask("nvmlDeviceGetMemoryInfo", library.device(index)).total)
    except NvmlError:
        return None


def _on_pci(sysroot: Sysroot, rails: Sequence[Rail]) -> Iterator[Gpu]:
    for path in sysroot.glob("/sys/bus/pci/devices/*"):
        vendor = _VENDORS.get(_read(sysroot, f"{path}/vendor"))
        if vendor is None or not _read(sysroot, f"{path}/class").startswith(_CLASSES):
            continue
        maker, source, drivers = vendor
        address = path.rpartition("/")[2]
        numbers = {chip.device: name for name, chip in cards(sysroot, drivers)}
        memory = _read(sysroot, f"{path}/mem_info_vram_total")
        product = _read(sysroot, f"{path}/product_name") or f"graphics {_read(sysroot, f'{path}/device')} at {address}"
        yield Gpu(
            name=f"{maker} {product}".replace(f"{maker} {maker}", maker),
            driver=_driver(sysroot, path),
            memory_bytes=int(memory) if memory.isdecimal() else None,
            power=_power(rails, source, numbers.get(address, "")),
        )


def _driver(sysroot: Sysroot, path: str) -> str:
    link = sysroot.path(f"{path}/driver")
    try:
        name = link.resolve().name if link.exists() else ""
    except OSError:
        return ""
    return f"{name} {_read(sysroot, f'/sys/module/{name}/version')}".strip() if name else ""


def _on_board(sysroot: Sysroot, rails: Sequence[Rail]) -> Iterator[Gpu]:
    for path in sysroot.glob(f"{_DEVFREQ}/*"):
        name = path.rpartition("/")[2]
        if _OF_BOARDS.fullmatch(name):
            own = [rail for rail in rails if _BOARD_RAIL.search(rail.name)]
            yield Gpu(
                name=f"the board's {name}",
                driver="devfreq",
                power=tuple(f"{rail.key}: {_quality(rail)}" for rail in own),
            )


def _power(rails: Sequence[Rail], source: str, name: str) -> tuple[str, ...]:
    """Return a card's figures in words; an APU's are called so, and include its cores."""
    names = {name, name.replace("GPU", "APU")} - {""}
    found = [rail for rail in rails if rail.source == source and rail.name.partition(" ")[0] in names]
    return tuple(f"{rail.key}: {_quality(rail)}" for rail in found)


def _quality(rail: Rail) -> str:
    kind = "energy counter" if rail.quantity is RailQuantity.ENERGY else "power"
    parts = ["averaged power" if rail.name.endswith(" average") else kind, f"±{rail.relative_error:.1%}"]
    if rail.update_period_s:
        parts.append(f"new every {rail.update_period_s:g} s")
    if rail.seen_share < 1:
        parts.append(f"looks {rail.seen_share:.0%} of the time")
    if rail.name.startswith("APU"):
        parts.append("with the processor's cores")
    if rail.name.endswith("package"):
        parts.append("a part of the card")
    if rail.source not in CARD_SOURCES and re.search("CPU|SOC|CV", rail.name):
        parts.append("with other parts of the board")
    return ", ".join(parts)


def _read(sysroot: Sysroot, path: str) -> str:
    try:
        return sysroot.read(path).strip()
    except OSError:
        return ""
