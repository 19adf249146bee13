"""Intel's graphics cards through the energy counters of the drivers i915 and xe.

Source: kernel, ABI/testing/sysfs-driver-intel-i915-hwmon and sysfs-driver-intel-xe-hwmon. ``energy1_input`` is the
card's, ``energy2_input`` (xe alone) that of its package: without memory and regulators outside of it, so a part of the
card's. Graphics inside a processor have no such files: their energy is in the processor package's counter (``rapl``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from powerlab.domain.power import Rail, RailQuantity, SourceProbe
from powerlab.power.base import Channel, FileChannel
from powerlab.power.sources.graphics_chips import cards
from powerlab.power.sources.hwmon.chip import HwmonChip
from powerlab.power.sources.hwmon.known_chips import UNSTATED_ERROR
from powerlab.power.sources.scan import Scan, sensor_provenance
from powerlab.sysroot import Sysroot

_STEP_J = 2.0**-14
"""The usual unit of Intel's counters; the driver rounds to µJ."""
_PERIOD_S = 1e-3
_FILES = {"energy1_input": "", "energy2_input": " package"}
_DENIED_REMEDY = (
    "until the next boot: `sudo chmod a+r /sys/class/hwmon/hwmon*/energy*_input`, or run powerlab with sudo"
)


class IntelGpu:
    """``GPU0`` is the card's energy counter; ``GPU0 package`` lies inside it, and is all there is on some cards."""

    name = "intel_gpu"
    drivers = ("i915", "xe")
    root_files: tuple[str, ...] = (r"/sys/class/hwmon/hwmon[0-9]+/energy[12]_input",)

    def probe(self, sysroot: Sysroot) -> SourceProbe:
        """Say what is there."""
        return _scan(sysroot).probe(
            self.name, absent="no Intel graphics card with an energy counter", denied_remedy=_DENIED_REMEDY
        )

    def channels(self, sysroot: Sysroot) -> Sequence[Channel]:
        """Return how to read each rail."""
        return _scan(sysroot).channels


def _scan(sysroot: Sysroot) -> Scan:
    scan = Scan()
    for name, chip in cards(sysroot, IntelGpu.drivers):
        for channel in _channels(sysroot, name, chip):
            scan.add(sysroot, channel)
    return scan


def _channels(sysroot: Sysroot, name: str, chip: HwmonChip) -> Iterator[FileChannel]:
    for file, part in _FILES.items():
        path = f"{chip.directory}/{file}"
        if sysroot.path(path).exists():
            rail = Rail(
                source=IntelGpu.name,
                name=f"{name}{part}",
                quantity=RailQuantity.ENERGY,
                resolution=_STEP_J,
                relative_error=UNSTATED_ERROR,
                update_period_s=_PERIOD_S,
                provenance=sensor_provenance(sysroot),
            )
            yield FileChannel(rail=rail, paths=(path,), scale=1e-6)
