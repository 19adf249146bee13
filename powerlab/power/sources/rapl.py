"""Energy counters of x86 processors (RAPL), through the kernel's powercap tree.

Source: Documentation/power/powercap/powercap.rst; Intel SDM vol. 3B, 15.10; AMD processors use the same tree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from powerlab.domain.power import Rail, RailQuantity, SourceProbe
from powerlab.power.base import Channel, FileChannel
from powerlab.power.sources.scan import Scan, natural, read_integer, read_text, sensor_provenance
from powerlab.sysroot import Sysroot

_ZONE = re.compile(r"(?P<control>intel-rapl(?:-[a-z]{1,16})?):(?P<numbers>[0-9]{1,6}(?::[0-9]{1,6})*)")
_LARGEST_COUNT = 2**32 - 1
"""The register is 32 bits wide and the kernel's range is this count in µJ, so it gives the step: 262143328850 µJ is
61.035 µJ a count. The counter starts again at 0 one step after its range."""
_UPDATE_PERIOD_S = 0.001
_PACKAGE_ERROR = 0.05
"""Against wall-side references packages agree within about 5 % (Khan et al., RAPL in Action, 2018)."""
_MEMORY_ERROR = 0.2
"""Memory within about 20 % (Desrochers et al., A Validation of DRAM RAPL Power Measurements, 2016)."""
_PLATFORM_ERROR = 0.1
"""psys is as good as the sensor that a board's maker put in, and no publication we know compares many."""
_AMD_ERROR = 0.1
"""AMD's counters are computed from activity, not measured; powers of equal readings differ by the data that the
processor works on (Schöne et al., Energy Efficiency Aspects of the AMD Zen 2 Architecture, 2021)."""

_AMD = r"^vendor_id\s*:\s*(AuthenticAMD|HygonGenuine)$"
_NOT_X86 = "no RAPL energy counters: only Intel and AMD processors have them"
_VIRTUAL = "no RAPL energy counters: this is a virtual machine, and its host keeps them to itself"
_NO_DRIVER = "no RAPL energy counters: their driver is not loaded, or the processor is too old"
_NO_DRIVER_REMEDY = "load the driver: `sudo modprobe intel_rapl_msr` (it serves AMD processors too)"
_DENIED_REMEDY = (
    "until the next boot: `sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj`; for good, put the line "
    '`SUBSYSTEM=="powercap", ACTION=="add", RUN+="/bin/chmod a+r /sys%p/energy_uj"` into '
    "/etc/udev/rules.d/60-powerlab-rapl.rules and reboot. The kernel reserves these files to root because fine-grained "
    "energy can leak secrets to other users of the machine (CVE-2020-8694)"
)


@dataclass(frozen=True, slots=True)
class ZoneName:
    """A powercap directory's name: the control type and the zone's numbers, ``(0, 1)`` for ``intel-rapl:0:1``."""

    control: str
    numbers: tuple[int, ...]


def parse_zone_name(text: str) -> ZoneName:
    """Parse a powercap directory's name.

    Raises:
        ValueError: it is not a RAPL zone, for example ``intel-rapl``, which is the control type itself.
    """
    match = _ZONE.fullmatch(text)
    if match is None:
        raise ValueError(f"not a RAPL zone: {text[:40]!r}")
    return ZoneName(match["control"], tuple(int(number) for number in match["numbers"].split(":")))


class Rapl:
    """Packages as ``package-0``, what lies inside them as ``package-0/dram``, the platform as ``psys``."""

    name = "rapl"
    # Root's alone since CVE-2020-8694 (kernel, power/powercap).
    root_files: tuple[str, ...] = (r"/sys/class/powercap/intel-rapl(-mmio)?(:[0-9]+)+/energy_uj",)

    def probe(self, sysroot: Sysroot) -> SourceProbe:
        """Say what is there."""
        absent, absent_remedy = _why_absent(read_text(sysroot, "/proc/cpuinfo"))
        return _scan(sysroot).probe(self.name, absent=absent, absent_remedy=absent_remedy, denied_remedy=_DENIED_REMEDY)

    def channels(self, sysroot: Sysroot) -> Sequence[Channel]:
        """Return the counters that can be read now."""
        return _scan(sysroot).channels


def _why_absent(cpuinfo: str) -> tuple[str, str]:
    """Return why a machine may have no counters, and what to do about it, from the text of ``/proc/cpuinfo``."""
    if not re.search(r"^vendor_id\s*:\s*(GenuineIntel|AuthenticAMD|HygonGenuine)$", cpuinfo, re.MULTILINE):
        return _NOT_X86, ""
    if re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE):
        return _VIRTUAL, ""
    return _NO_DRIVER, _NO_DRIVER_REMEDY


def _zones(sysroot: Sysroot) -> dict[ZoneName, tuple[str, str]]:
    """Return the path and the ``name`` of each zone; those of intel-rapl come before their doubles elsewhere."""
    zones = {}
    for path in sorted(sysroot.glob("/sys/class/powercap/intel-rapl*:*"), key=natural):
        try:
            zone = parse_zone_name(path.rpartition("/")[2])
        except ValueError:
            continue
        if name := read_text(sysroot, f"{path}/name"):
            zones[zone] = (path, name)
    return dict(sorted(zones.items(), key=lambda item: (item[0].control, item[0].numbers)))


def _scan(sysroot: Sysroot) -> Scan:
    """Try every counter. A zone's ``enabled`` file is about its power limit: counters run in disabled zones, too."""
    scan = Scan()
    control_of: dict[str, str] = {}
    taken: set[str] = set()
    zones = _zones(sysroot)
    amd = re.search(_AMD, read_text(sysroot, "/proc/cpuinfo"), re.MULTILINE) is not None
    for zone, (path, name) in zones.items():
        parent = zones.get(ZoneName(zone.control, zone.numbers[:-1]))
        rail_name = f"{parent[1]}/{name}" if parent else name
        # intel-rapl-mmio is another door to a package that is already there: adding both would count it twice.
        if control_of.setdefault(rail_name, zone.control) != zone.control:
            continue
        if rail_name in taken:
            rail_name = f"{rail_name}@{':'.join(map(str, zone.numbers))}"
        taken.add(rail_name)
        scan.add(sysroot, _channel(sysroot, path, rail_name, _relative_error(name, amd)))
    return scan


def _relative_error(zone_name: str, amd: bool) -> float:
    if zone_name == "dram":
        return _MEMORY_ERROR
    if zone_name == "psys":
        return _PLATFORM_ERROR
    return _AMD_ERROR if amd else _PACKAGE_ERROR


def _channel(sysroot: Sysroot, path: str, rail_name: str, relative_error: float) -> FileChannel:
    range_uj = max(read_integer(sysroot, f"{path}/max_energy_range_uj") or 0, 0)
    step_uj = range_uj / _LARGEST_COUNT
    rail = Rail(
        source=Rapl.name,
        name=rail_name,
        quantity=RailQuantity.ENERGY,
        resolution=step_uj * 1e-6,
        relative_error=relative_error,
        update_period_s=_UPDATE_PERIOD_S,
        provenance=sensor_provenance(sysroot),
    )
    return FileChannel(rail=rail, paths=(f"{path}/energy_uj",), scale=1e-6, wraps_at=range_uj + round(step_uj) or None)
