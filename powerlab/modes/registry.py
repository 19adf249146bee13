"""The list of knobs. A knob is one module in this package and one line here."""

from __future__ import annotations

from powerlab.modes.base import Knob
from powerlab.modes.knobs.cpu_quota.knob import CpuQuota
from powerlab.modes.knobs.cpufreq.knob import CpuFreq
from powerlab.modes.knobs.emc.knob import Emc
from powerlab.modes.knobs.gpu_devfreq import GpuDevfreq
from powerlab.modes.knobs.hotplug import Hotplug
from powerlab.modes.knobs.jetson_clocks.knob import JetsonClocks
from powerlab.modes.knobs.nvml_limit.knob import NvmlLimit
from powerlab.modes.knobs.nvpmodel.knob import Nvpmodel
from powerlab.modes.knobs.pci_cards.amd_gpu import AmdGpu
from powerlab.modes.knobs.pci_cards.intel_gpu import IntelGpu
from powerlab.modes.knobs.platform_profile import PlatformProfile
from powerlab.modes.knobs.rapl_limit import RaplLimit

KNOBS: tuple[Knob, ...] = (
    Nvpmodel(),
    PlatformProfile(),
    Hotplug(),
    CpuFreq(),
    GpuDevfreq(),
    Emc(),
    RaplLimit(),
    NvmlLimit(),
    AmdGpu(),
    IntelGpu(),
    CpuQuota(),
    JetsonClocks(),
)
"""In the order in which settings are made and put back. What resets others comes first: nvpmodel sets cores, clocks and
caps anew, a firmware's profile brings power limits and preferences of its own. Clocks come after the cores they belong
to, and jetson_clocks last, because it pins every clock to the limit that the others have set."""
