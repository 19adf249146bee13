"""The knobs powerlab can turn. A knob is one module in this package and one line here."""

from __future__ import annotations

from powerlab.modes.base import Knob
from powerlab.modes.cpu_quota import CpuQuota
from powerlab.modes.cpufreq import CpuFreq
from powerlab.modes.emc import Emc
from powerlab.modes.gpu_devfreq import GpuDevfreq
from powerlab.modes.hotplug import Hotplug
from powerlab.modes.jetson_clocks import JetsonClocks
from powerlab.modes.nvml_limit import NvmlLimit
from powerlab.modes.nvpmodel import Nvpmodel
from powerlab.modes.platform_profile import PlatformProfile
from powerlab.modes.rapl_limit import RaplLimit

KNOBS: tuple[Knob, ...] = (
    Nvpmodel(),
    PlatformProfile(),
    Hotplug(),
    CpuFreq(),
    GpuDevfreq(),
    Emc(),
    RaplLimit(),
    NvmlLimit(),
    CpuQuota(),
    JetsonClocks(),
)
"""In the order in which settings are made and put back. What resets others comes first: nvpmodel sets cores, clocks and
caps anew, a firmware's profile brings power limits and preferences of its own. Clocks come after the cores they belong
to, and jetson_clocks last, because it pins every clock to the limit that the others have set."""
