"""AMD graphics through the files of the driver amdgpu (kernel, Documentation/gpu/amdgpu/thermal.rst).

``power1_input`` is the power now, ``power1_average`` an average over a time that nobody states, and the table
``gpu_metrics`` of accelerators holds an energy counter (:mod:`powerlab.power.sources.gpu_metrics`); which of them there
are depends on the generation. All are of the whole chip with its memory and regulators; on a processor with graphics
(APU) they include its cores, so such a rail is called ``APU0`` and never added to the processor's own.

The counter is taken before the averages because it follows a load faster: so McDaniel et al. found on MI250X and MI300A
(arXiv 2604.06056).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from powerlab.domain.power import Rail, RailQuantity, SourceProbe
from powerlab.power.base import Channel, FileChannel, PolledChannel
from powerlab.power.sources import gpu_metrics
from powerlab.power.sources.graphics_chips import cards, has
from powerlab.power.sources.hwmon.chip import HwmonChip
from powerlab.power.sources.hwmon.known_chips import UNSTATED_ERROR
from powerlab.power.sources.scan import Scan, read_text, sensor_provenance
from powerlab.sysroot import Sysroot

_STEP_W = 1.0
"""The firmware's tables hold whole watts on many generations."""
_PERIOD_S = {"energy": 1e-3, "instant": 1e-3, "average": 1.0}
"""The driver keeps a table for 1 ms; how long an average is, is not stated, so it is taken as NVIDIA's."""
_FILES = {"instant": "power1_input", "average": "power1_average"}
_OF_APUS = ("slowPPT", "fastPPT")
_DENIED_REMEDY = "until the next boot: `sudo chmod a+r /sys/class/hwmon/hwmon*/power1_*`, or run powerlab with sudo"


class Amdgpu:
    """``GPU0`` is a card's best figure: its energy counter, else its power now, else its average power.

    Beside it ``GPU0 instant`` and ``GPU0 average`` are offered where they are something else: the same power again.
    """

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
    for card, chip in cards(sysroot, (Amdgpu.name,)):
        name = card.replace("GPU", "APU") if is_apu(sysroot, chip) else card
        read_j = gpu_metrics.counter(sysroot, f"{chip.directory}/device")
        if read_j is not None:
            scan.channels.append(PolledChannel(rail=_rail(sysroot, name, "energy"), read=read_j))
        for channel in _channels(sysroot, name, chip, best=read_j is None):
            scan.add(sysroot, channel)
    return scan


def _channels(sysroot: Sysroot, name: str, chip: HwmonChip, *, best: bool) -> Iterator[FileChannel]:
    """Yield the rails of a chip's files; the first is the card's best figure where there is no counter."""
    found = [kind for kind, file in _FILES.items() if sysroot.path(f"{chip.directory}/{file}").exists()]
    for position, kind in enumerate(found):
        own = name if best and not position else f"{name} {kind}"
        yield FileChannel(rail=_rail(sysroot, own, kind), paths=(f"{chip.directory}/{_FILES[kind]}",), scale=1e-6)


def _rail(sysroot: Sysroot, name: str, kind: str) -> Rail:
    counts = kind == "energy"
    return Rail(
        source=Amdgpu.name,
        name=name,
        quantity=RailQuantity.ENERGY if counts else RailQuantity.POWER,
        resolution=gpu_metrics.UNIT_J if counts else _STEP_W,
        relative_error=UNSTATED_ERROR,
        update_period_s=_PERIOD_S[kind],
        provenance=sensor_provenance(sysroot),
    )


def is_apu(sysroot: Sysroot, chip: HwmonChip) -> bool:
    """Tell whether a chip's power includes cores: only such chips have a northbridge voltage, or a slow limit."""
    return has(sysroot, chip, "in1_input") or read_text(sysroot, f"{chip.directory}/power1_label") in _OF_APUS
