"""The list of power sources. A source is one module in this package and one line here."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.boards.registry import detect
from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Availability, SourceProbe
from powerlab.power.base import Channel, PowerSource
from powerlab.power.sources.amdgpu import Amdgpu
from powerlab.power.sources.battery.source import Battery
from powerlab.power.sources.estimate import Estimate
from powerlab.power.sources.hwmon.source import Hwmon
from powerlab.power.sources.ina238.source import Ina238
from powerlab.power.sources.ina3221 import Ina3221
from powerlab.power.sources.intel_gpu import IntelGpu
from powerlab.power.sources.ipmi import Ipmi
from powerlab.power.sources.jtop.source import Jtop
from powerlab.power.sources.meter import Meter
from powerlab.power.sources.nvml import Nvml
from powerlab.power.sources.rapl import Rapl
from powerlab.power.sources.tegrastats import Tegrastats
from powerlab.power.total import choose_total
from powerlab.sysroot import Sysroot

SENSORS: tuple[PowerSource, ...] = (
    Ina3221(),
    Ina238(),
    Rapl(),
    Hwmon(),
    Nvml(),
    Amdgpu(),
    IntelGpu(),
    Ipmi(),
    Battery(),
    Meter(),
    Tegrastats(),
    Jtop(),
)
"""Sources that measure."""

ESTIMATE = Estimate()

SOURCES: tuple[PowerSource, ...] = (*SENSORS, ESTIMATE)
"""Every source; the estimate comes last, because it is offered only where the sensors give no total."""


def probe_all(sysroot: Sysroot) -> tuple[SourceProbe, ...]:
    """Ask every source what is there; absent ones answer too. Never raises."""
    probes = tuple(sensor.probe(sysroot) for sensor in SENSORS)
    if choose_total(probes, detect(sysroot)) is None:
        return (*probes, ESTIMATE.probe(sysroot))
    detail = "not offered: sensors measure the power here"
    return (*probes, SourceProbe(source=ESTIMATE.name, availability=Availability.ABSENT, detail=detail))


def channels_of(sysroot: Sysroot, rail_keys: Sequence[str]) -> tuple[Channel, ...]:
    """Return how to read each rail, in the order asked for.

    Raises:
        PowerlabError: a rail is not there.
    """
    wanted = {key.partition(":")[0] for key in rail_keys}
    found = {
        channel.rail.key: channel for source in SOURCES if source.name in wanted for channel in source.channels(sysroot)
    }
    missing = [key for key in rail_keys if key not in found]
    if missing:
        raise PowerlabError(
            f"this device has no readable rail {', '.join(missing)}; `powerlab doctor` lists the rails it has."
        )
    return tuple(found[key] for key in rail_keys)
