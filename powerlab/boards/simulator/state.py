"""Reads a simulated board's settings out of its tree, the way its kernel would know them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.clusters import Policy, policies_of
from powerlab.boards.simulator.physics import BoardState, Core
from powerlab.sysroot import Sysroot

EMC_IDLE_FRACTION = 0.5
_EPP_SHARE = {"power": 0.6, "balance_power": 0.8}
"""How far up its range a core goes under an energy preference; all others go to the top."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyState:
    """A cluster's clocks: what its governor picks when it works (``busy_khz``) and when it idles (``idle_khz``)."""

    policy: Policy
    online_cores: tuple[int, ...]
    busy_khz: int
    idle_khz: int
    shallow: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyGpu:
    """What the first GPU does while it computes, all as shares.

    Attributes:
        power: of its changing power.
        clock: of its highest clock.
        memory: of its memory's highest clock.
    """

    power: float
    clock: float
    memory: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the knobs of a board are set to, and what heat and limits leave of it.

    Attributes:
        policies: every cluster, in core order.
        gpu_share: the clock each GPU is allowed, as a share of its highest.
        busy_gpu: what the first GPU makes of work; None where the simulator has none that computes.
        emc_hz: the memory's highest allowed clock; 0 where the board says nothing about it.
        emc_pinned: the memory keeps that clock when nothing runs.
        quota_cores: the CPU quota of the load; None where there is none.
    """

    policies: tuple[PolicyState, ...]
    gpu_share: tuple[float, ...] = ()
    busy_gpu: BusyGpu | None = None
    emc_hz: int = 0
    emc_pinned: bool = False
    quota_cores: float | None = None

    @property
    def online_cores(self) -> tuple[int, ...]:
        """The numbers of all online cores, ascending."""
        return tuple(sorted(core for policy in self.policies for core in policy.online_cores))

    def state(self, busy_threads: int, gpu_load: float = 0.0) -> BoardState:
        """Return the board's state while so many threads compute, which fill the policies in their order.

        Args:
            busy_threads: threads that compute.
            gpu_load: the share of time in which the first GPU computes.
        """
        resting = not busy_threads and not self.emc_pinned
        return BoardState(
            cores=tuple(_core(policy) for policy in self.policies for _ in policy.online_cores),
            busy_threads=busy_threads,
            gpu_share=self._gpu_share_under(gpu_load),
            emc_hz=int(self.emc_hz * EMC_IDLE_FRACTION) if resting else self.emc_hz,
            quota_cores=self.quota_cores,
        )

    def _gpu_share_under(self, load: float) -> tuple[float, ...]:
        if not load or self.busy_gpu is None:
            return self.gpu_share
        first, *others = self.gpu_share
        return (max(first, first + load * (self.busy_gpu.power - first)), *others)


def _core(state: PolicyState) -> Core:
    cluster = state.policy.cluster
    return Core(
        busy_khz=state.busy_khz,
        idle_khz=state.idle_khz,
        package=cluster.package,
        speed=cluster.speed,
        switching=cluster.switching,
        shallow=state.shallow,
    )


def read_settings(sysroot: Sysroot, simulation: Mapping[str, Any]) -> Settings:
    """Return what the knobs are set to now.

    Raises:
        OSError: a file is missing.
        ValueError: a file holds something a kernel would not have taken, or no core is online.
    """
    caps = _caps(sysroot)
    fixed = frozenset(simulation["cpu"].get("fixed_cores", ()))
    settings = Settings(
        policies=tuple(_policy(sysroot, policy, fixed, caps.get("cpu", 1.0)) for policy in policies_of(simulation)),
        gpu_share=_gpu_share(sysroot, simulation, caps),
        busy_gpu=_busy_gpu(caps),
        emc_hz=_emc_hz(sysroot, simulation),
        emc_pinned=_emc_pinned(sysroot, simulation),
        quota_cores=_quota_cores(sysroot),
    )
    if not settings.online_cores:
        raise ValueError("no core is online")
    return settings


def _policy(sysroot: Sysroot, policy: Policy, fixed: frozenset[int], cap: float) -> PolicyState:
    directory = f"{layout.CPU}/cpufreq/{policy.name}"
    governor = _line(sysroot, f"{directory}/scaling_governor")
    low, high = (int(_line(sysroot, f"{directory}/scaling_{end}_freq")) for end in ("min", "max"))
    preference = _optional_line(sysroot, f"{directory}/energy_performance_preference")
    if preference is not None:
        # With a driver that has preferences (intel_pstate, amd-pstate), powersave is a governor that follows the load.
        busy_khz = int(low + _EPP_SHARE.get(preference, 1.0) * (high - low))
    else:
        busy_khz = low if governor in {"powersave", "userspace"} else high
    idle_khz = high if governor == "performance" else low
    online = tuple(core for core in policy.cores if core in fixed or _is_online(sysroot, core))
    deepest = f"{layout.CPU}/cpu{policy.cores[0]}/cpuidle/state1/disable"
    return PolicyState(
        policy=policy,
        online_cores=online,
        busy_khz=_capped(busy_khz, policy, cap),
        idle_khz=_capped(idle_khz, policy, cap),
        shallow=_optional_line(sysroot, deepest) == "1",
    )


def _capped(freq_khz: int, policy: Policy, cap: float) -> int:
    """Return a clock that is within the cluster's table, and not above the cap, which is a share of its highest."""
    freqs = policy.cluster.freqs_khz
    freq_khz = max(freqs[0], min(freq_khz, freqs[-1]))
    if cap >= 1.0 or freq_khz <= cap * freqs[-1]:
        return freq_khz
    return min(freq_khz, max((freq for freq in freqs if freq <= cap * freqs[-1]), default=freqs[0]))


def _is_online(sysroot: Sysroot, core: int) -> bool:
    return _line(sysroot, f"{layout.CPU}/cpu{core}/online") == "1"


def _gpu_share(sysroot: Sysroot, simulation: Mapping[str, Any], caps: Mapping[str, float]) -> tuple[float, ...]:
    count = len(simulation["power"].get("gpu_base_w", ()))
    shares = [min(caps.get("gpu", 1.0), caps.get(f"gpu{number}", 1.0)) for number in range(count)]
    if "gpu_devfreq" in simulation:
        table = simulation["gpu_devfreq"]
        limit_hz = int(_line(sysroot, f"{gpu_directory(table, _variant(sysroot))}/max_freq"))
        shares[0] = min(shares[0], max(limit_hz, table["freqs_hz"][0]) / table["freqs_hz"][-1])
    return tuple(shares)


def _busy_gpu(caps: Mapping[str, float]) -> BusyGpu | None:
    found = {name: share for name in ("power", "clock", "memory") if (share := caps.get(f"gpu0.{name}")) is not None}
    return BusyGpu(**found) if len(found) == len(BusyGpu.__dataclass_fields__) else None


def gpu_directory(table: Mapping[str, Any], variant: str) -> str:
    """Return the directory of the GPU's clock, from the table ``[simulation.gpu_devfreq]``."""
    device: str = layout.variant_value(table["device"], variant)
    return f"/sys/devices/{device}/devfreq/{device.rpartition('/')[2]}"


def _variant(sysroot: Sysroot) -> str:
    return layout.variant_of(layout.read_marker(sysroot)["jetpack"])


def _emc_hz(sysroot: Sysroot, simulation: Mapping[str, Any]) -> int:
    if "emc" not in simulation:
        return 0
    most: int = simulation["emc"]["max_hz"]
    cap = int(_line(sysroot, simulation["emc"]["cap"]))
    return max(simulation["emc"]["min_hz"], min(cap, most)) if cap > 0 else most


def _emc_pinned(sysroot: Sysroot, simulation: Mapping[str, Any]) -> bool:
    lock = simulation.get("emc", {}).get("lock")
    return lock is not None and _optional_line(sysroot, lock) == "1"


def _quota_cores(sysroot: Sysroot) -> float | None:
    """Return the quota of the load's control group, in cores (kernel, admin-guide/cgroup-v2, ``cpu.max``)."""
    quota, _, period = (_optional_line(sysroot, f"{layout.CGROUP}/cpu.max") or "max").partition(" ")
    return None if quota == "max" else int(quota) / int(period or 100_000)


def _caps(sysroot: Sysroot) -> dict[str, float]:
    try:
        text = sysroot.read(layout.CAPS_FILE)
    except OSError:
        return {}
    return {name: float(share) for name, _, share in (line.partition(" ") for line in text.splitlines()) if share}


def _line(sysroot: Sysroot, path: str) -> str:
    return layout.line_of(sysroot, path)


def _optional_line(sysroot: Sysroot, path: str) -> str | None:
    try:
        return _line(sysroot, path)
    except FileNotFoundError:
        return None
