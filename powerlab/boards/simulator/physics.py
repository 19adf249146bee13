"""What a simulated board draws and how fast it is: pure functions of its state, so that a test knows the truth.

A board is made of components, each in W:

- ``cpu0``, ``cpu1``, a processor package each: a constant part, and every online core leaks in proportion to its
  voltage and switches k·V²·f when busy, a small share of it when idle; V grows linearly with f, down to a smallest
  voltage.
- ``gpu0``, ``gpu1``: a constant part and one in proportion to the clock it may have (no engine of ours computes there).
- ``memory`` and ``soc``: a constant part, one that grows with the memory's clock, one with the busy cores' traffic.
- ``board``: a constant part and the loss of the regulators, in proportion to all of the above.

A rail is a weighted sum of components, as the board's file states it. An inference takes the time its arithmetic needs
at the clocks of its cores, which threads shorten by Amdahl's law, and the time its bytes need at the memory's clock
(:func:`inference_s`). A CPU quota below the busy cores stretches both and thins the switching in the same measure.

These are textbook shapes (Weste & Harris, CMOS VLSI Design, ch. 5; Amdahl, 1967) with chosen coefficients:
everything that comes out is ``simulated``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from powerlab.boards.simulator.clusters import cpu_max_khz

CALL_S = 0.0005
"""What calling an engine costs on one core at its highest clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """One online core.

    Attributes:
        busy_khz: its clock while it computes.
        idle_khz: its clock while it idles.
        package: the socket it sits in.
        speed: work done per clock, relative to the board's fastest kind.
        switching: power per clock and V², relative to the model's.
        shallow: whether it may not enter its deepest idle state.
    """

    busy_khz: int
    idle_khz: int
    package: int = 0
    speed: float = 1.0
    switching: float = 1.0
    shallow: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardState:
    """What decides a board's power.

    Attributes:
        cores: every online core, in the order in which threads fill them.
        busy_threads: threads that compute now; more than the online cores count as all of them.
        gpu_share: the clock each GPU is allowed, as a share of its highest.
        emc_hz: the memory's clock.
        quota_cores: how many cores' time the threads may use together; None where nothing limits it.
        activity: how much the busy cores switch, as a multiple of what a whole network makes them.
    """

    cores: tuple[Core, ...]
    busy_threads: int
    gpu_share: tuple[float, ...] = ()
    emc_hz: int = 0
    quota_cores: float | None = None
    activity: float = 1.0

    @property
    def busy_cores(self) -> int:
        """Cores that compute now."""
        return min(self.busy_threads, len(self.cores))

    @property
    def busy_share(self) -> float:
        """The share of time in which the busy cores may compute."""
        if self.quota_cores is None or not self.busy_cores:
            return 1.0
        return min(1.0, self.quota_cores / self.busy_cores)


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerModel:
    """The coefficients of :func:`components_w`, and the clocks they refer to; the units stand in their names.

    ``core_shallow_factor`` is how much more an idle core switches that may not enter its deepest idle state.
    ``flops_per_clock`` is what one core of the board's fastest kind sustains, ``memory_gb_per_s`` what all cores
    together get from the memory at its highest clock.
    """

    volt_at_zero: float
    volt_per_ghz: float
    volt_min: float
    core_w_per_ghz_v2: float
    core_leak_w_per_v: float
    core_idle_fraction: float = 0.03
    core_shallow_factor: float = 3.0
    cpu_base_w: float = 0.0
    gpu_base_w: tuple[float, ...] = ()
    gpu_w_at_max: tuple[float, ...] = ()
    memory_base_w: float = 0.0
    memory_w_per_emc_ghz: float = 0.0
    memory_w_per_traffic: float = 0.0
    soc_base_w: float = 0.0
    soc_w_per_emc_ghz: float = 0.0
    soc_w_per_traffic: float = 0.0
    board_base_w: float = 0.0
    regulator_loss: float = 0.0
    parallel_fraction: float = 0.96
    flops_per_clock: float
    memory_gb_per_s: float
    cpu_max_khz: int
    emc_max_hz: int

    @classmethod
    def from_document(cls, simulation: Mapping[str, Any]) -> PowerModel:
        """Return the model in a board file's ``[simulation]`` table."""
        fields = dict(simulation["power"])
        for name in ("gpu_base_w", "gpu_w_at_max"):
            fields[name] = tuple(fields.get(name, ()))
        emc_max_hz = simulation["emc"]["max_hz"] if "emc" in simulation else 0
        return cls(**fields, cpu_max_khz=cpu_max_khz(simulation), emc_max_hz=emc_max_hz)

    def volt(self, freq_khz: int) -> float:
        """Return the core voltage in V at a clock."""
        return max(self.volt_min, self.volt_at_zero + self.volt_per_ghz * freq_khz / 1e6)


def components_w(model: PowerModel, state: BoardState) -> dict[str, float]:
    """Return what each component of the board draws, in W."""
    packages: dict[int, float] = {}
    traffic = 0.0
    for index, core in enumerate(state.cores):
        share = state.busy_share if index < state.busy_cores else 0.0
        busy_w, idle_w = _busy_w(model, core, state.activity), _idle_w(model, core)
        packages[core.package] = packages.get(core.package, model.cpu_base_w) + share * busy_w + (1.0 - share) * idle_w
        traffic += share * core.busy_khz / model.cpu_max_khz
    emc_ghz = state.emc_hz / 1e9
    found = {f"cpu{package}": watts for package, watts in sorted(packages.items())}
    for number, (base_w, clock_w) in enumerate(zip(model.gpu_base_w, model.gpu_w_at_max, strict=True)):
        found[f"gpu{number}"] = base_w + clock_w * state.gpu_share[number]
    for name in ("memory", "soc"):
        base_w, per_ghz, per_traffic = (
            getattr(model, f"{name}_{kind}") for kind in ("base_w", "w_per_emc_ghz", "w_per_traffic")
        )
        found[name] = base_w + per_ghz * emc_ghz + per_traffic * traffic
    found["board"] = model.board_base_w + model.regulator_loss * sum(found.values())
    return found


def _busy_w(model: PowerModel, core: Core, activity: float) -> float:
    volt = model.volt(core.busy_khz)
    return model.core_leak_w_per_v * volt + activity * _switching_w(model, core, core.busy_khz)


def _idle_w(model: PowerModel, core: Core) -> float:
    share = model.core_idle_fraction * (model.core_shallow_factor if core.shallow else 1.0)
    return model.core_leak_w_per_v * model.volt(core.idle_khz) + share * _switching_w(model, core, core.idle_khz)


def _switching_w(model: PowerModel, core: Core, freq_khz: int) -> float:
    return model.core_w_per_ghz_v2 * core.switching * model.volt(freq_khz) ** 2 * freq_khz / 1e6


def rails_w(rails: Mapping[str, Mapping[str, float]], components: Mapping[str, float]) -> dict[str, float]:
    """Return what each rail draws, in W; a component the board has not (an empty socket) adds nothing."""
    return {
        rail: sum(weight * components.get(component, 0.0) for component, weight in parts.items())
        for rail, parts in rails.items()
    }


@dataclass(frozen=True, slots=True)
class Work:
    """What a piece of computing has to do.

    Attributes:
        flops: floating-point operations.
        bytes_moved: bytes to and from memory.
        calls: how often an engine is called for it; a step of an inference has a share of its call.
    """

    flops: float
    bytes_moved: float
    calls: float = 1.0

    def __mul__(self, times: float) -> Work:
        return Work(self.flops * times, self.bytes_moved * times, self.calls * times)

    def __add__(self, other: Work) -> Work:
        return Work(self.flops + other.flops, self.bytes_moved + other.bytes_moved, self.calls + other.calls)


def inference_s(model: PowerModel, state: BoardState, work: Work) -> float:
    """Return how long the busy threads take, in s: a call of the engine, the arithmetic, then the memory traffic.

    The arithmetic follows Amdahl (1967): its serial share runs on the first busy core, the rest on all of them, each as
    fast as its clock and kind allow. The memory is as fast for many cores as for one. So more threads never take
    longer, and gain less than the cores they add.

    Raises:
        ValueError: no core is busy.
    """
    rates = [core.busy_khz * core.speed / model.cpu_max_khz for core in state.cores[: state.busy_cores]]
    if not rates:
        raise ValueError("no core is busy")
    serial = 1.0 - model.parallel_fraction
    compute_s = work.flops / (model.flops_per_clock * model.cpu_max_khz * 1e3)
    compute_s *= serial / rates[0] + model.parallel_fraction / sum(rates)
    slower_memory = model.emc_max_hz / state.emc_hz if state.emc_hz else 1.0
    memory_s = work.bytes_moved / (model.memory_gb_per_s * 1e9) * slower_memory
    return (work.calls * CALL_S / rates[0] + compute_s + memory_s) / state.busy_share
