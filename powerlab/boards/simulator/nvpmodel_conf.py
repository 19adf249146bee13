"""Writes the ``nvpmodel.conf`` of a simulated board from its published table of modes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from powerlab.boards.board import VendorMode
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.clusters import Policy, core_numbers, policies_of
from powerlab.boards.simulator.start import cpu_cap_khz, mode_cores
from powerlab.boards.simulator.state import gpu_directory

_REBOOT_MASK = 1
_LIVE_MASK = 0


def render_conf(simulation: Mapping[str, Any], modes: tuple[VendorMode, ...], default: int, variant: str) -> str:
    """Return the text of ``/etc/nvpmodel.conf``: the parameters, every mode, and the default mode."""
    blocks = [list(_parameters(simulation, variant)), *(list(_mode(mode, simulation)) for mode in modes)]
    blocks.append([f"< PM_CONFIG DEFAULT={default} >"])
    return "\n".join("\n".join([*block, ""]) for block in blocks)


def _clocks(simulation: Mapping[str, Any]) -> list[tuple[str, Policy]]:
    """Return every CPU clock under the name its modes use: the cluster's, numbered where it has several."""
    policies = policies_of(simulation)
    names = [policy.cluster.name for policy in policies]
    return [
        (name if names.count(name) == 1 else f"{name}_{names[:index].count(name)}", policy)
        for index, (name, policy) in enumerate(zip(names, policies, strict=True))
    ]


def _switchable(simulation: Mapping[str, Any]) -> list[int]:
    fixed = simulation["cpu"].get("fixed_cores", ())
    return [core for core in core_numbers(simulation) if core not in fixed]


def _parameters(simulation: Mapping[str, Any], variant: str) -> Iterator[str]:
    gpu = gpu_directory(simulation["gpu_devfreq"], variant)
    device = gpu.partition("/devfreq/")[0]
    yield from ("# Power models of a simulated board.", "", "< PARAM TYPE=FILE NAME=CPU_ONLINE >")
    for core in _switchable(simulation):
        yield f"CORE_{core} {layout.CPU}/cpu{core}/online"
    yield from ("", "< PARAM TYPE=FILE NAME=TPC_POWER_GATING >", f"TPC_PG_MASK {device}/tpc_pg_mask")
    yield from ("", "< PARAM TYPE=FILE NAME=GPU_POWER_CONTROL_ENABLE >", f"GPU_PWR_CNTL_EN {device}/power/control")
    for name, policy in _clocks(simulation):
        cpufreq = f"{layout.CPU}/cpu{policy.cores[0]}/cpufreq"
        yield from ("", f"< PARAM TYPE=CLOCK NAME={name} >", f"FREQ_TABLE {cpufreq}/scaling_available_frequencies")
        yield from (f"MAX_FREQ {cpufreq}/scaling_max_freq", f"MIN_FREQ {cpufreq}/scaling_min_freq")
    yield from ("", "< PARAM TYPE=CLOCK NAME=GPU >", f"FREQ_TABLE {gpu}/available_frequencies")
    yield from (f"MAX_FREQ {gpu}/max_freq", f"MIN_FREQ {gpu}/min_freq")
    yield from ("", "< PARAM TYPE=CLOCK NAME=EMC >", f"MAX_FREQ {simulation['emc']['cap']}")


def _mode(mode: VendorMode, simulation: Mapping[str, Any]) -> Iterator[str]:
    # A board takes a changed power-gating mask only before the GPU's first context: that is why a mode needs a reboot.
    mask = _REBOOT_MASK if mode.requires_reboot else _LIVE_MASK
    online = mode_cores(simulation, mode)
    yield f"< POWER_MODEL ID={mode.id} NAME={mode.name} >"
    for core in _switchable(simulation):
        yield f"CPU_ONLINE CORE_{core} {int(core in online)}"
    yield f"TPC_POWER_GATING TPC_PG_MASK {mask}"
    yield "GPU_POWER_CONTROL_ENABLE GPU_PWR_CNTL_EN on"
    for name, policy in _clocks(simulation):
        yield f"{name} MIN_FREQ {policy.cluster.start_min_khz}"
        yield f"{name} MAX_FREQ {cpu_cap_khz(simulation, mode, policy.cluster)}"
    yield f"GPU MIN_FREQ {simulation['gpu_devfreq']['min_hz']}"
    yield f"GPU MAX_FREQ {mode.gpu_hz}"
    yield f"EMC MAX_FREQ {mode.emc_hz}"
