"""Reads a simulated board's settings out of its tree, the way its kernel would know them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.physics import BoardState
from powerlab.sysroot import Sysroot

EMC_IDLE_FRACTION = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyState:
    """A cluster's clocks: what its governor picks when it works (``busy_khz``) and when it idles (``idle_khz``)."""

    name: str
    online_cores: tuple[int, ...]
    busy_khz: int
    idle_khz: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the knobs of a board are set to.

    Attributes:
        policies: every cluster, in core order.
        gpu_hz: the GPU's highest allowed clock.
        emc_hz: the memory's highest allowed clock.
    """

    policies: tuple[PolicyState, ...]
    gpu_hz: int
    emc_hz: int

    @property
    def online_cores(self) -> tuple[int, ...]:
        """The numbers of all online cores."""
        return tuple(core for policy in self.policies for core in policy.online_cores)

    def state(self, busy_threads: int) -> BoardState:
        """Return the board's state while that many threads compute."""
        return BoardState(
            core_khz=tuple(policy.busy_khz for policy in self.policies for _ in policy.online_cores),
            idle_khz=tuple(policy.idle_khz for policy in self.policies for _ in policy.online_cores),
            busy_threads=busy_threads,
            gpu_hz=self.gpu_hz,
            emc_hz=self.emc_hz if busy_threads else int(self.emc_hz * EMC_IDLE_FRACTION),
        )


def read_settings(sysroot: Sysroot, simulation: Mapping[str, Any], core_count: int) -> Settings:
    """Return what the knobs are set to now.

    Raises:
        OSError: a file is missing.
        ValueError: a file holds something a kernel would not have taken, or no core is online.
    """
    size = simulation["cores_per_policy"]
    emc_cap = int(_line(sysroot, layout.EMC_CAP))
    settings = Settings(
        policies=tuple(
            _policy(sysroot, first, range(first, min(first + size, core_count))) for first in range(0, core_count, size)
        ),
        gpu_hz=int(_line(sysroot, f"{layout.gpu_devfreq(simulation)}/max_freq")),
        emc_hz=min(emc_cap, simulation["emc_max_hz"]) if emc_cap > 0 else simulation["emc_max_hz"],
    )
    if not settings.online_cores:
        raise ValueError("no core is online")
    return settings


def _policy(sysroot: Sysroot, first: int, cores: range) -> PolicyState:
    directory = f"{layout.CPU}/cpufreq/policy{first}"
    governor = _line(sysroot, f"{directory}/scaling_governor")
    low, high = (int(_line(sysroot, f"{directory}/scaling_{end}_freq")) for end in ("min", "max"))
    return PolicyState(
        name=f"policy{first}",
        online_cores=tuple(core for core in cores if _line(sysroot, f"{layout.CPU}/cpu{core}/online") == "1"),
        busy_khz=low if governor in {"powersave", "userspace"} else high,
        idle_khz=high if governor == "performance" else low,
    )


def _line(sysroot: Sysroot, path: str) -> str:
    return layout.first_line(sysroot.path(path))
