"""The caches of 64-bit Arm cores as their makers publish them, for boards whose kernel does not state them.

Source: the documents that ``data/arm-cores.toml`` names. How a core is known: "MIDR_EL1, Main ID Register" of the Arm
Architecture Reference Manual (DDI 0487), and the kernel's ``arch/arm64/kernel/cpuinfo.c``, which prints its fields.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources

from msgspec import Struct

from powerlab.sysroot import Sysroot


class ArmCore(Struct, frozen=True, kw_only=True):
    """A core's design with its caches.

    Attributes:
        name: the maker's.
        implementer: bits 31 to 24 of its main identification register: who made it.
        part: bits 15 to 4: which design.
        l1_kib: first level, data, of one core.
        l1_ways: its associativity; 0 where it is not published.
        l2_kib: second level, all of it.
        l2_cores: how many cores share that.
        l3_kib: third level, all of it; 0 where there is none.
        source: the documents that say so.
    """

    name: str
    implementer: int
    part: int
    l1_kib: int
    l1_ways: int = 0
    l2_kib: int
    l2_cores: int
    l3_kib: int = 0
    source: str


FEATURES = {
    "asimdhp": "fp16",
    "asimddp": "dotprod",
    "bf16": "bf16",
    "i8mm": "i8mm",
    "sve": "sve",
    "sve2": "sve2",
}
"""What the kernel calls an extension of the instruction set for vectors (``arm64/elf_hwcaps``) -> its usual name."""


def arm_features(sysroot: Sysroot) -> tuple[str, ...]:
    """Return the extensions for vectors that every processor of a machine has, beyond ARMv8.0's."""
    said = [set(paragraph.get("Features", "").split()) for paragraph in _paragraphs(sysroot)]
    common = set.intersection(*said) if said else set()
    return tuple(name for kernels, name in FEATURES.items() if kernels in common)


@functools.cache
def known_cores() -> Mapping[tuple[int, int], ArmCore]:
    """Return the cores of the table by implementer and part."""
    text = resources.files("powerlab.engine").joinpath("data/arm-cores.toml").read_text(encoding="utf-8")
    cores = (ArmCore(**fields) for fields in tomllib.loads(text)["core"])
    return {(core.implementer, core.part): core for core in cores}


def arm_cores(sysroot: Sysroot) -> dict[int, ArmCore]:
    """Return the processors of a machine whose design is known, by number; none on another architecture."""
    found = {}
    for paragraph in _paragraphs(sysroot):
        try:
            number, implementer, part = (int(paragraph[name], 0) for name in _IDENTITY)
        except (KeyError, ValueError):
            continue
        if core := known_cores().get((implementer, part)):
            found[number] = core
    return found


_IDENTITY = ("processor", "CPU implementer", "CPU part")


def _paragraphs(sysroot: Sysroot) -> Iterator[dict[str, str]]:
    """Yield what ``/proc/cpuinfo`` says of each processor."""
    try:
        text = sysroot.read("/proc/cpuinfo")
    except OSError:
        return
    for paragraph in filter(str.strip, text.split("\n\n")):
        pairs = (line.partition(":") for line in paragraph.splitlines())
        yield {name.strip(): value.strip() for name, _, value in pairs}
