"""Why an Intel processor was throttled: the register CORE_PERF_LIMIT_REASONS of each package.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 4: register 0x64F from Skylake on, 0x690 on
Haswell and Broadwell. The lower half says what limits now, the upper half what has limited since a program last cleared
it; so of the upper half only bits that appear meanwhile mean something.

Heat and a voltage regulator in need count as throttling. Power limits, limits of turbo and the electrical design
point do not: keeping to a limit that was set, or that the processor is built with, is how it runs in its power mode.
Where that takes it below its guaranteed clock, the watch ``cpu_clocks`` says so.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass

from powerlab.domain.power import Availability
from powerlab.privileged.reading import read_denied_register
from powerlab.sysroot import Sysroot
from powerlab.throttling.base import Watching, WatchProbe
from powerlab.throttling.reading import counted

_LOG_SHIFT = 16
_HEAT = {
    0: "another part of the machine asked it to slow down (PROCHOT)",
    1: "it was too hot",
    6: "its voltage regulator was too hot",
}
_SKYLAKE = {
    **_HEAT,
    5: "it was too hot over a longer time",
    7: "its voltage regulator could not deliver more current",
}
_HASWELL_MODELS = frozenset({0x3C, 0x45, 0x46, 0x3F, 0x3D, 0x47, 0x4F, 0x56})
_OTHER_MODELS = frozenset(
    {0x37, 0x4A, 0x4C, 0x4D, 0x57, 0x5A, 0x5C, 0x5D, 0x5F, 0x75, 0x7A, 0x85, 0x86, 0x8A, 0x96, 0x9C, 0xAF, 0xB6, 0x3E}
)
"""Atom and Xeon Phi, whose bits mean other things, and Ivy Bridge-EP, which has no such register."""
_FIRST_MODEL = 0x3C


@dataclass(frozen=True, slots=True)
class Register:
    """Where the reasons stand, and which of its bits are throttling."""

    address: int
    reasons: dict[int, str]


def register_of(cpuinfo: str) -> Register | None:
    """Return the register of the processor that ``/proc/cpuinfo`` describes; None where it has none that is known."""
    fields = dict(re.findall(r"^(vendor_id|cpu family|model)\t*: ([^\n]*)$", cpuinfo, re.MULTILINE))
    if fields.get("vendor_id") != "GenuineIntel" or fields.get("cpu family") != "6":
        return None
    text = fields.get("model", "")
    model = int(text) if re.fullmatch(r"[0-9]{1,4}", text) else 0
    if model < _FIRST_MODEL or model in _OTHER_MODELS:
        return None
    if model in _HASWELL_MODELS:
        return Register(0x690, _HEAT)
    return Register(0x64F, _SKYLAKE)


def first_processors(cpuinfo: str) -> list[int]:
    """Return one processor of each package, the first."""
    first: dict[str, int] = {}
    for block in cpuinfo.split("\n\n"):
        number = re.search(r"^processor\t*: ([0-9]{1,5})$", block, re.MULTILINE)
        package = re.search(r"^physical id\t*: ([0-9]+)$", block, re.MULTILINE)
        if number:
            first.setdefault(package[1] if package else "0", int(number[1]))
    return list(first.values())


def limiting(value: int, register: Register) -> frozenset[int]:
    """Return the bits of the reasons that limit now."""
    return frozenset(bit for bit in register.reasons if value >> bit & 1)


def logged(value: int, register: Register) -> frozenset[int]:
    """Return the bits of the reasons that have limited since the register was last cleared."""
    return frozenset(bit for bit in register.reasons if value >> (bit + _LOG_SHIFT) & 1)


def _read(sysroot: Sysroot, processor: int, address: int) -> int:
    """Return a register's value, through the privileged helper if need be; raises OSError as the driver does."""
    try:
        descriptor = os.open(sysroot.path(f"/dev/cpu/{processor}/msr"), os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        return read_denied_register(sysroot, processor, address)
    try:
        found = os.pread(descriptor, 8, address)
    finally:
        os.close(descriptor)
    if len(found) != 8:
        raise OSError(f"register {address:#x} of processor {processor} gave {len(found)} bytes")
    return int.from_bytes(found, "little")


class _Package:
    """One package's register: what limited it, how often it was seen, and what was logged before."""

    def __init__(self, sysroot: Sysroot, processor: int, register: Register) -> None:
        self.processor = processor
        self._sysroot, self._register = sysroot, register
        self._seen: Counter[int] = Counter()
        self._logged_before: frozenset[int] | None = None
        self._logged: frozenset[int] = frozenset()
        self._looks = 0

    def look(self) -> None:
        try:
            value = _read(self._sysroot, self.processor, self._register.address)
        except OSError:
            return
        self._looks += 1
        self._seen.update(limiting(value, self._register))
        self._logged = logged(value, self._register)
        if self._logged_before is None:
            self._logged_before = self._logged

    def sentences(self) -> list[str]:
        appeared = self._logged - (self._logged_before or frozenset())
        return [
            f"the processor package of cpu{self.processor} was slowed down: {self._register.reasons[bit]} "
            + (f"(seen in {self._seen[bit] / self._looks:.0%} of the looks)" if self._seen[bit] else "(for a moment)")
            for bit in sorted(appeared | set(self._seen))
        ]


class _Watching:
    def __init__(self, sysroot: Sysroot) -> None:
        cpuinfo = _cpuinfo(sysroot)
        register = register_of(cpuinfo)
        processors = [] if register is None else first_processors(cpuinfo)
        self._packages = [_Package(sysroot, number, register) for number in processors if register is not None]
        self.sample()

    def sample(self) -> None:
        for package in self._packages:
            package.look()

    def finish(self) -> tuple[str, ...]:
        self.sample()
        return tuple(sentence for package in self._packages for sentence in package.sentences())


def _cpuinfo(sysroot: Sysroot) -> str:
    try:
        return sysroot.read("/proc/cpuinfo")
    except OSError:
        return ""


class PerfLimitReasons:
    """Watches the perf limit reasons of Intel processors."""

    name = "perf_limit_reasons"

    def probe(self, sysroot: Sysroot) -> WatchProbe:
        """Say whether the register can be read."""
        cpuinfo = _cpuinfo(sysroot)
        register = register_of(cpuinfo)
        if register is None:
            return self._answer(
                Availability.ABSENT, "this processor has no register that is known to say why it is slow"
            )
        packages = first_processors(cpuinfo)
        try:
            for processor in packages:
                _read(sysroot, processor, register.address)
        except PermissionError:
            return self._answer(
                Availability.DENIED,
                "this user may not read the processor's registers",
                "run powerlab as root (sudo), or start powerlab-helper: /dev/cpu/*/msr is for root alone, whatever its"
                " file mode says",
            )
        except FileNotFoundError:
            return self._answer(
                Availability.ABSENT,
                "the kernel's msr driver is not loaded",
                "`sudo modprobe msr` loads it until the next boot",
            )
        except OSError as error:
            return self._answer(Availability.BROKEN, f"the processor does not answer ({error.strerror or error})")
        return self._answer(
            Availability.AVAILABLE, f"register {register.address:#x} of {counted(len(packages), 'package')}"
        )

    def _answer(self, availability: Availability, detail: str, remedy: str = "") -> WatchProbe:
        return WatchProbe(watch=self.name, availability=availability, detail=detail, remedy=remedy)

    def start(self, sysroot: Sysroot) -> Watching:
        """Note what was logged before."""
        return _Watching(sysroot)
