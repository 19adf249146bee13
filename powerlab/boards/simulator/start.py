"""How a simulated board is set when it has booted: the vendor's mode it starts in, as far as it has modes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from powerlab.boards.board import Board, VendorMode
from powerlab.boards.simulator.clusters import Cluster, clusters_of, core_numbers, parse_cores, policies_of
from powerlab.boards.simulator.state import PolicyState, Settings

_UNCAPPED = VendorMode(id=-1, name="", cores=1 << 16, cpu_khz=-1, gpu_hz=-1, emc_hz=0)


def modes_of(board: Board, jetpack: int | None) -> tuple[VendorMode, ...]:
    """Return the vendor's modes under one JetPack."""
    return tuple(mode for mode in board.vendor_modes if not mode.jetpacks or jetpack in mode.jetpacks)


def start_mode(board: Board, simulation: Mapping[str, Any], jetpack: int | None) -> VendorMode:
    """Return the mode the board boots in; one without any cap for a board that has no modes."""
    number = simulation.get("nvpmodel", {}).get("start_mode", 0)
    return next((mode for mode in modes_of(board, jetpack) if mode.id == number), _UNCAPPED)


def mode_cores(simulation: Mapping[str, Any], mode: VendorMode) -> tuple[int, ...]:
    """Return the cores a mode leaves online."""
    cores = core_numbers(simulation)
    return parse_cores(mode.online) if mode.online else cores[: mode.cores]


def cpu_cap_khz(simulation: Mapping[str, Any], mode: VendorMode, cluster: Cluster) -> int:
    """Return a mode's cap of a cluster's clock as the mode states it, in kHz; -1 is none."""
    if not mode.cluster_khz:
        return mode.cpu_khz
    names = [found.name for found in clusters_of(simulation)]
    return mode.cluster_khz[names.index(cluster.name)]


def nearest_not_above(freqs: tuple[int, ...] | list[int], cap: int) -> int:
    """Return the clock of a table that a cap leaves, as the kernel rounds it; -1 and 0 are no cap."""
    return freqs[-1] if cap <= 0 else max((freq for freq in freqs if freq <= cap), default=freqs[0])


def start_settings(board: Board, simulation: Mapping[str, Any], jetpack: int | None) -> Settings:
    """Return what the knobs are set to when the board has booted."""
    mode = start_mode(board, simulation, jetpack)
    online = mode_cores(simulation, mode)
    governor = simulation["cpu"]["governor"]
    policies = []
    for policy in policies_of(simulation):
        high = nearest_not_above(policy.cluster.freqs_khz, cpu_cap_khz(simulation, mode, policy.cluster))
        low = min(policy.cluster.low_khz, high)
        policies.append(
            PolicyState(
                policy=policy,
                online_cores=tuple(core for core in policy.cores if core in online),
                busy_khz=high,
                idle_khz=high if governor == "performance" else low,
            )
        )
    shares = [1.0] * len(simulation["power"].get("gpu_base_w", ()))
    if "gpu_devfreq" in simulation:
        freqs = simulation["gpu_devfreq"]["freqs_hz"]
        shares[0] = nearest_not_above(freqs, mode.gpu_hz) / freqs[-1]
    emc_max_hz = simulation["emc"]["max_hz"] if "emc" in simulation else 0
    return Settings(
        policies=tuple(policies),
        gpu_share=tuple(shares),
        emc_hz=min(mode.emc_hz, emc_max_hz) if mode.emc_hz > 0 else emc_max_hz,
    )
