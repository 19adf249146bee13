"""The list of watches. A watch is one module in this package and one line here."""

from __future__ import annotations

from powerlab.sysroot import Sysroot
from powerlab.throttling.base import Watch, WatchProbe
from powerlab.throttling.cpu_clocks import CpuClocks
from powerlab.throttling.nvml_violations import NvmlViolations
from powerlab.throttling.perf_limit_reasons import PerfLimitReasons
from powerlab.throttling.soctherm_oc import SocthermOc
from powerlab.throttling.thermal import Thermal
from powerlab.throttling.x86_throttle import X86Throttle

WATCHES: tuple[Watch, ...] = (
    Thermal(),
    SocthermOc(),
    CpuClocks(),
    X86Throttle(),
    PerfLimitReasons(),
    NvmlViolations(),
)


def probe_watches(sysroot: Sysroot) -> tuple[WatchProbe, ...]:
    """Ask every watch what it can tell; absent ones answer too."""
    return tuple(watch.probe(sysroot) for watch in WATCHES)
