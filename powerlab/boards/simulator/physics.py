"""What a simulated board draws and how fast it is: pure functions of its state, so that a test knows the truth.

CPU rail: every online core leaks in proportion to its voltage and switches C·V²·f when busy, a small fraction of it
when idle; V grows linearly with f. Memory and SOC rails grow with the memory clock and with the traffic of the busy
cores. The 5 V rail carries a constant part and the loss of the regulators. These are textbook shapes (Weste & Harris,
CMOS VLSI Design, ch. 5) with chosen coefficients: everything that comes out is ``simulated``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

INA3221_SHUNT_STEP_UV = 40
INA3221_BUS_STEP_MV = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardState:
    """What decides a board's power.

    Attributes:
        core_khz: the clock of each online core while it runs, in core order.
        idle_khz: the clock of each online core while it idles.
        busy_threads: threads that compute now; more than the online cores count as all of them.
        gpu_hz: the GPU's highest allowed clock.
        emc_hz: the memory's clock.
    """

    core_khz: tuple[int, ...]
    idle_khz: tuple[int, ...]
    busy_threads: int
    gpu_hz: int
    emc_hz: int

    @property
    def busy_cores(self) -> int:
        """Cores that compute now."""
        return min(self.busy_threads, len(self.core_khz))


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerModel:
    """The coefficients of :func:`power_w`, from the board's file, and the clocks they refer to."""

    volt_at_zero: float
    volt_per_ghz: float
    volt_min: float
    core_w_per_ghz_v2: float
    core_idle_fraction: float
    core_leak_w_per_v: float
    cpu_base_w: float
    gpu_base_w: float
    gpu_w_at_max: float
    soc_base_w: float
    soc_w_per_emc_ghz: float
    soc_w_per_traffic: float
    ddr_base_w: float
    ddr_w_per_emc_ghz: float
    ddr_w_per_traffic: float
    sys5v_base_w: float
    regulator_loss: float
    cpu_max_khz: int
    gpu_max_hz: int
    parallel_fraction: float

    @classmethod
    def from_document(cls, simulation: Mapping[str, Any]) -> PowerModel:
        """Return the model in a board file's ``[simulation]`` table."""
        return cls(
            **simulation["power"],
            cpu_max_khz=max(simulation["cpu_freqs_khz"]),
            gpu_max_hz=max(simulation["gpu_freqs_hz"]),
            parallel_fraction=simulation["parallel_fraction"],
        )

    def volt(self, freq_khz: int) -> float:
        """Return the core voltage in V at a clock."""
        return max(self.volt_min, self.volt_at_zero + self.volt_per_ghz * freq_khz / 1e6)


def power_w(model: PowerModel, state: BoardState) -> dict[str, float]:
    """Return what each rail of the board draws, in W, without noise and before the sensor rounds it."""
    cpu = model.cpu_base_w
    traffic = 0.0
    for index, (busy_khz, idle_khz) in enumerate(zip(state.core_khz, state.idle_khz, strict=True)):
        busy = index < state.busy_cores
        freq_khz = busy_khz if busy else idle_khz
        volt = model.volt(freq_khz)
        switching = model.core_w_per_ghz_v2 * volt**2 * freq_khz / 1e6
        cpu += model.core_leak_w_per_v * volt + switching * (1.0 if busy else model.core_idle_fraction)
        traffic += freq_khz / model.cpu_max_khz if busy else 0.0
    emc_ghz = state.emc_hz / 1e9
    rails = {
        "GPU": model.gpu_base_w + model.gpu_w_at_max * state.gpu_hz / model.gpu_max_hz,
        "CPU": cpu,
        "SOC": model.soc_base_w + model.soc_w_per_emc_ghz * emc_ghz + model.soc_w_per_traffic * traffic,
        "CV": 0.0,
        "VDDRQ": model.ddr_base_w + model.ddr_w_per_emc_ghz * emc_ghz + model.ddr_w_per_traffic * traffic,
    }
    rails["SYS5V"] = model.sys5v_base_w + model.regulator_loss * sum(rails.values())
    return rails


def speedup(model: PowerModel, threads: int, online_cores: int) -> float:
    """Return how much faster than one thread ``threads`` threads are (Amdahl, 1967); more than the cores add nothing.

    Raises:
        ValueError: there is no thread or no core.
    """
    cores = min(threads, online_cores)
    if cores < 1:
        raise ValueError("at least one thread and one core are needed")
    return 1.0 / (1.0 - model.parallel_fraction + model.parallel_fraction / cores)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What an INA3221 channel's registers say, in the driver's units."""

    voltage_mv: int
    current_ma: int

    @property
    def power_mw(self) -> int:
        """The product, as the JetPack 4 driver shows it."""
        return self.voltage_mv * self.current_ma // 1000

    def values(self) -> dict[str, int]:
        """Return voltage, current and power by the names the tree's files go by."""
        return {"voltage": self.voltage_mv, "current": self.current_ma, "power": self.power_mw}


def noisy(true_w: float, noise: random.Random) -> float:
    """Return one instant of a rail whose mean is ``true_w``: regulators ripple, by about 70 mW and 1 % here."""
    if true_w <= 0.0:
        return 0.0
    ripple_w = 0.01 * true_w + 0.07 * min(1.0, true_w / 0.3)
    return max(0.0, noise.gauss(true_w, ripple_w))


def quantised(drawn_w: float, supply_mv: int, shunt_uohm: int) -> Reading:
    """Round a power as the chip does: the current by 40 µV over the shunt, the voltage by 8 mV (INA3221 data sheet)."""
    step_ma = INA3221_SHUNT_STEP_UV * 1000 / shunt_uohm
    voltage_mv = round(supply_mv / INA3221_BUS_STEP_MV) * INA3221_BUS_STEP_MV
    steps = round(drawn_w * 1e6 / voltage_mv / step_ma)
    return Reading(voltage_mv=voltage_mv, current_ma=round(steps * step_ma))
