"""The parts a simulated board can be made of. A part is one module in this package and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from powerlab.boards.board import Board
from powerlab.boards.simulator.parts.amdgpu import Amdgpu
from powerlab.boards.simulator.parts.base import Part
from powerlab.boards.simulator.parts.battery import Battery
from powerlab.boards.simulator.parts.cpu import Cpu
from powerlab.boards.simulator.parts.dmi import Dmi
from powerlab.boards.simulator.parts.emc import Emc
from powerlab.boards.simulator.parts.gpu_devfreq import GpuDevfreq
from powerlab.boards.simulator.parts.hwmon_chips import HwmonChips
from powerlab.boards.simulator.parts.ina3221 import Ina3221
from powerlab.boards.simulator.parts.intel_gpu import IntelGpu
from powerlab.boards.simulator.parts.ipmi import Ipmi
from powerlab.boards.simulator.parts.jetson_clocks import JetsonClocks
from powerlab.boards.simulator.parts.l4t import L4t
from powerlab.boards.simulator.parts.nvml import Nvml
from powerlab.boards.simulator.parts.nvpmodel import NvpmodelProgram
from powerlab.boards.simulator.parts.platform_profile import PlatformProfile
from powerlab.boards.simulator.parts.rapl import Rapl
from powerlab.boards.simulator.parts.soctherm_oc import SocthermOc
from powerlab.boards.simulator.parts.tegrastats import TegrastatsProgram
from powerlab.boards.simulator.parts.thermal import Thermal
from powerlab.boards.simulator.parts.x86_throttle import X86Throttle

PARTS: Mapping[str, type[Part]] = {
    "cpu": Cpu,
    "gpu_devfreq": GpuDevfreq,
    "emc": Emc,
    "thermal": Thermal,
    "soctherm_oc": SocthermOc,
    "nvpmodel": NvpmodelProgram,
    "jetson_clocks": JetsonClocks,
    "l4t": L4t,
    "ina3221": Ina3221,
    "tegrastats": TegrastatsProgram,
    "ipmi": Ipmi,
    "hwmon_chips": HwmonChips,
    "rapl": Rapl,
    "nvml": Nvml,
    "amdgpu": Amdgpu,
    "intel_gpu": IntelGpu,
    "battery": Battery,
    "dmi": Dmi,
    "platform_profile": PlatformProfile,
    "x86_throttle": X86Throttle,
}
"""By the name of their table in a board's file, ``[simulation.NAME]``."""


def parts_of(board: Board, simulation: Mapping[str, Any], variant: str) -> list[Part]:
    """Return the parts a board has, in the registry's order."""
    return [part(board, simulation[name], variant) for name, part in PARTS.items() if name in simulation]
