"""Writes the ``nvpmodel.conf`` of a simulated board from its published table of modes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from powerlab.boards.board import VendorMode

_CPU = "/sys/devices/system/cpu"
_REBOOT_MASK = 1
_LIVE_MASK = 0


def render_conf(core_count: int, simulation: Mapping[str, Any], modes: tuple[VendorMode, ...], default: int) -> str:
    """Return the text of ``/etc/nvpmodel.conf``: the parameters, every mode, and the default mode."""
    policies = range(0, core_count, simulation["cores_per_policy"])
    blocks = [_parameters(core_count, policies, f"/sys/devices/{simulation['gpu_device']}", simulation["gpu_device"])]
    blocks += [_mode(mode, core_count, len(policies), simulation) for mode in modes]
    blocks.append(f"< PM_CONFIG DEFAULT={default} >\n")
    return "\n".join(blocks)


def _parameters(core_count: int, policies: range, gpu: str, gpu_device: str) -> str:
    lines = ["# Power models of a simulated board.", "", "< PARAM TYPE=FILE NAME=CPU_ONLINE >"]
    lines += [f"CORE_{core} {_CPU}/cpu{core}/online" for core in range(core_count)]
    lines += ["", "< PARAM TYPE=FILE NAME=TPC_POWER_GATING >", f"TPC_PG_MASK {gpu}/tpc_pg_mask"]
    lines += ["", "< PARAM TYPE=FILE NAME=GPU_POWER_CONTROL_ENABLE >", f"GPU_PWR_CNTL_EN {gpu}/power/control"]
    for number, first_core in enumerate(policies):
        cpufreq = f"{_CPU}/cpu{first_core}/cpufreq"
        lines += [
            "",
            f"< PARAM TYPE=CLOCK NAME=CPU_DENVER_{number} >",
            f"FREQ_TABLE {cpufreq}/scaling_available_frequencies",
            f"MAX_FREQ {cpufreq}/scaling_max_freq",
            f"MIN_FREQ {cpufreq}/scaling_min_freq",
        ]
    lines += [
        "",
        "< PARAM TYPE=CLOCK NAME=GPU >",
        f"FREQ_TABLE {gpu}/devfreq/{gpu_device}/available_frequencies",
        f"MAX_FREQ {gpu}/devfreq/{gpu_device}/max_freq",
        f"MIN_FREQ {gpu}/devfreq/{gpu_device}/min_freq",
        "",
        "< PARAM TYPE=CLOCK NAME=EMC >",
        "MAX_FREQ /sys/kernel/nvpmodel_emc_cap/emc_iso_cap",
        "",
    ]
    return "\n".join(lines)


def _mode(mode: VendorMode, core_count: int, policy_count: int, simulation: Mapping[str, Any]) -> str:
    # A board takes a changed power-gating mask only before the GPU's first context: that is why a mode needs a reboot.
    mask = _REBOOT_MASK if mode.requires_reboot else _LIVE_MASK
    lines = [f"< POWER_MODEL ID={mode.id} NAME={mode.name} >"]
    lines += [f"CPU_ONLINE CORE_{core} {int(core < mode.cores)}" for core in range(core_count)]
    lines += [f"TPC_POWER_GATING TPC_PG_MASK {mask}", "GPU_POWER_CONTROL_ENABLE GPU_PWR_CNTL_EN on"]
    for number in range(policy_count):
        lines.append(f"CPU_DENVER_{number} MIN_FREQ {simulation['cpu_min_khz']}")
        lines.append(f"CPU_DENVER_{number} MAX_FREQ {mode.cpu_khz}")
    lines += [
        f"GPU MIN_FREQ {simulation['gpu_min_hz']}",
        f"GPU MAX_FREQ {mode.gpu_hz}",
        f"EMC MAX_FREQ {mode.emc_hz}",
        "",
    ]
    return "\n".join(lines)
