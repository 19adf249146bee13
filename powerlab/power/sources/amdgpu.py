"""AMD graphics through the hwmon files of the driver amdgpu (kernel, Documentation/gpu/amdgpu/thermal.rst).

``power1_input`` is the power now, ``power1_average`` an average over a time that nobody states; which of them there is
depends on the generation. Both are of the whole chip with its memory and regulators; on a processor with graphics
(APU) they include its cores, so such a rail is called ``APU0`` and never added to the processor's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from powerlab.domain.power import Rail, RailQuantity, SourceProbe
from powerlab.power.base import Channel, FileChannel
from powerlab.power.sources.graphics_chips import cards, has
from powerlab.power.sources.hwmon.chip import HwmonChip
from powerlab.power.sources.hwmon.known_chips import UNSTATED_ERROR
from powerlab.power.sources.scan import Scan, read_text, sensor_provenance
from powerlab.sysroot import Sysroot

_STEP_W = 1.0
"""The firmware's tables hold whole watts on many generations."""
_PERIOD_S = {"input": 1e-3, "average": 1.0}
"""The driver keeps a table for 1 ms; how long an average is, is not stated, so it is taken as NVIDIA's."""
_OF_APUS = ("slowPPT", "fastPPT")
_DENIED_REMEDY = "until the next boot: `sudo chmod a+r /sys/class/hwmon/hwmon*/power1_*`, or run powerlab with sudo"


class Amdgpu:
    """``GPU0`` is the power now, else the average; where both are there, ``GPU0 average`` is the same power again."""

    name = "amdgpu"
    root_files: tuple[str, ...] = (r"/sys/class/hwmon/hwmon[0-9]+/power1_(input|average)",)

    def probe(self, sysroot: Sysroot) -> SourceProbe:
        """Say what is there."""
        return _scan(sysroot).probe(
            self.name, absent="no AMD graphics with a power sensor", denied_remedy=_DENIED_REMEDY
        )

    def channels(self, sysroot: Sysroot) -> Sequence[Channel]:
        """Return how to read each rail."""
        return _scan(sysroot).channels


def _scan(sysroot: Sysroot) -> Scan:
    scan = Scan()
    for name, chip in cards(sysroot, (Amdgpu.name,)):
        for channel in _channels(sysroot, name, chip):
            scan.add(sysroot, channel)
    return scan


def _channels(sysroot: Sysroot, name: str, chip: HwmonChip) -> Iterator[FileChannel]:
    if is_apu(sysroot, chip):
        name = name.replace("GPU", "APU")
    found = [kind for kind in _PERIOD_S if sysroot.path(f"{chip.directory}/power1_{kind}").exists()]
    for position, kind in enumerate(found):
        rail = Rail(
            source=Amdgpu.name,
            name=f"{name} {kind}" if position else name,
            quantity=RailQuantity.POWER,
            resolution=_STEP_W,
            relative_error=UNSTATED_ERROR,
            update_period_s=_PERIOD_S[kind],
            provenance=sensor_provenance(sysroot),
        )
        yield FileChannel(rail=rail, paths=(f"{chip.directory}/power1_{kind}",), scale=1e-6)


def is_apu(sysroot: Sysroot, chip: HwmonChip) -> bool:
    """Tell whether a chip's power includes cores: only such chips have a northbridge voltage, or a slow limit."""
    return has(sysroot, chip, "in1_input") or read_text(sysroot, f"{chip.directory}/power1_label") in _OF_APUS
