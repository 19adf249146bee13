"""What clock a cpufreq policy must reach while its cores are busy: what governor and limits ask for, and no more.

Sources: the kernel's Documentation/admin-guide/pm (cpufreq, intel_pstate, amd-pstate) and
Documentation/ABI/testing/sysfs-devices-system-cpu. Turbo is never owed: on processors that have it only the clock that
is guaranteed without counts. Where the user asked for less than full speed in a way that cannot be put into kHz,
nothing is expected.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from powerlab.sysroot import Sysroot
from powerlab.throttling.reading import first_line, integer

_ROOT = "/sys/devices/system/cpu/cpufreq"
_CLIMBING = ("performance", "schedutil", "ondemand", "interactive")
"""Governors that go to the upper limit when a core is busy."""
_OWN_GOVERNOR = re.compile(r"intel_pstate|amd[-_]pstate.*", re.ASCII)
"""Drivers whose ``powersave`` is a climbing governor too, steered by the energy preference."""
_TURBO = re.compile(r"intel_pstate|intel_cpufreq|amd[-_]pstate.*|acpi-cpufreq|pcc-cpufreq", re.ASCII)
"""Drivers of processors whose highest clock may be turbo."""
_FULL_SPEED_PREFERENCES = ("", "default", "performance", "balance_performance")
_SAVING_PROFILES = ("low-power", "cool", "quiet")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedClock:
    """A policy: its folder, its processors and what they must reach under load."""

    path: str
    processors: frozenset[int]
    khz: int

    @property
    def name(self) -> str:
        """``policy0``."""
        return self.path.rsplit("/", 1)[1]


def parse_processors(text: str) -> frozenset[int]:
    """Return the numbers in ``0 1 2 3``; anything else gives none."""
    return frozenset(map(int, text.split())) if re.fullmatch(r"[0-9]{1,6}( +[0-9]{1,6})*", text) else frozenset()


def requested_clocks(sysroot: Sysroot) -> list[RequestedClock]:
    """Return the policies of which it is known what they must reach."""
    if _virtual(sysroot) or _saving(sysroot):
        return []
    found = []
    for path in sysroot.glob(f"{_ROOT}/policy*"):
        processors = parse_processors(first_line(sysroot, f"{path}/affected_cpus"))
        khz = _requested_khz(sysroot, path, min(processors)) if processors else None
        if khz is not None and khz > 0:
            found.append(RequestedClock(path=path, processors=processors, khz=khz))
    return found


def actual_khz(sysroot: Sysroot, policy: str) -> int | None:
    """Return the clock in kHz, as measured where the processor counts its cycles (kernel 6.13 and later)."""
    return integer(sysroot, f"{policy}/cpuinfo_avg_freq") or integer(sysroot, f"{policy}/scaling_cur_freq")


def _requested_khz(sysroot: Sysroot, policy: str, processor: int) -> int | None:
    governor = first_line(sysroot, f"{policy}/scaling_governor")
    driver = first_line(sysroot, f"{policy}/scaling_driver")
    limit, guaranteed = integer(sysroot, f"{policy}/scaling_max_freq"), _guaranteed_khz(sysroot, policy, processor)
    if limit is None or guaranteed is None:
        return None
    own = _OWN_GOVERNOR.fullmatch(driver) is not None
    if governor in _CLIMBING or (governor == "powersave" and own):
        preference = first_line(sysroot, f"{policy}/energy_performance_preference")
        return min(limit, guaranteed) if governor == "performance" or preference in _FULL_SPEED_PREFERENCES else None
    if governor == "powersave":
        lowest = integer(sysroot, f"{policy}/scaling_min_freq")
        return None if lowest is None else min(lowest, limit, guaranteed)
    if governor == "userspace":
        speed = integer(sysroot, f"{policy}/scaling_setspeed")
        return None if speed is None else min(speed, limit, guaranteed)
    return None


def _guaranteed_khz(sysroot: Sysroot, policy: str, processor: int) -> int | None:
    """Return the highest clock without turbo; None where the processor has turbo and nobody says from where on."""
    base = integer(sysroot, f"{policy}/base_frequency")
    if base:
        return base
    nominal_mhz = integer(sysroot, f"/sys/devices/system/cpu/cpu{processor}/acpi_cppc/nominal_freq")
    if nominal_mhz:
        return nominal_mhz * 1000
    if _TURBO.fullmatch(first_line(sysroot, f"{policy}/scaling_driver")) or "vendor_id" in _cpuinfo(sysroot):
        return max(parse_clocks(first_line(sysroot, f"{policy}/scaling_available_frequencies")), default=None)
    return integer(sysroot, f"{policy}/cpuinfo_max_freq")


def parse_clocks(text: str) -> list[int]:
    """Return the clocks in a list of kHz; words that are no clock are left out."""
    return [int(word) for word in text.split() if re.fullmatch(r"[0-9]{1,9}", word)]


def _virtual(sysroot: Sysroot) -> bool:
    """Tell whether this is a virtual machine: its clocks belong to the host."""
    return re.search(r"^flags\t*:.* hypervisor( |$)", _cpuinfo(sysroot), re.MULTILINE) is not None


def _cpuinfo(sysroot: Sysroot) -> str:
    try:
        return sysroot.read("/proc/cpuinfo")
    except OSError:
        return ""


def _saving(sysroot: Sysroot) -> bool:
    """Tell whether the user, or the maker for them, chose to save power at the price of clocks."""
    if first_line(sysroot, "/sys/firmware/acpi/platform_profile") in _SAVING_PROFILES:
        return True
    for zone in sysroot.glob("/sys/class/powercap/intel-rapl:*"):
        limit = integer(sysroot, f"{zone}/constraint_0_power_limit_uw")
        design = integer(sysroot, f"{zone}/constraint_0_max_power_uw")
        if limit and design and limit < design:
            return True
    return False
