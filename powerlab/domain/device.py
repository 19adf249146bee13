"""A device and its capabilities."""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.domain.mode import PowerMode
from powerlab.domain.power import SourceProbe, TotalFormula
from powerlab.domain.temperature import NO_LIMITS, TemperatureLimits
from powerlab.domain.workload import WorkloadKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A board or a host, as its own agent describes it.

    Attributes:
        name: what people call it; the host name unless configured.
        board: a name in ``powerlab boards``, or ``generic`` for a host without a description.
        architecture: ``x86_64`` or ``aarch64``, the machine the engine's code runs on.
        cpu_model: as the processor names itself.
        core_count: cores a sweep may use at most (affinity mask and cgroup quota honoured).
        memory_bytes: installed memory.
        kernel: the running kernel's release.
        simulated: True where a simulated board stands behind the sysroot; every figure is then ``simulated``.
    """

    name: str
    board: str
    architecture: str
    cpu_model: str
    core_count: int
    memory_bytes: int
    kernel: str
    simulated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a device can measure and set.

    Attributes:
        sources: one probe per known source, the absent ones too.
        total: the formula of the board's power; None where no rail can be read.
        modes: the power modes that can be set now; always holds ``current``.
        may_reboot: its agent reboots it for a power mode that needs that.
        thermal_zones: names of the zones and cards that give a temperature; None where an older agent does not say.
        temperature_limits: what its agent holds it to, whatever a plan asks for.
        workloads: what it can do with models; an older agent does not say that it can train.
        recomputes: whether it can train with activations computed again; an older agent does not say so.
        trains_on_gpu: whether it can train on a graphics processor; an older agent does not say so.
        knows_queues: whether it can be asked to spread slices over queues; an older agent does not say so.
        clusters: whether its agent can train together with others'.
    """

    sources: tuple[SourceProbe, ...]
    total: TotalFormula | None
    modes: tuple[PowerMode, ...]
    may_reboot: bool = False
    thermal_zones: tuple[str, ...] | None = None
    temperature_limits: TemperatureLimits = NO_LIMITS
    workloads: tuple[WorkloadKind, ...] = (WorkloadKind.INFERENCE,)
    recomputes: bool = False
    trains_on_gpu: bool = False
    knows_queues: bool = False
    clusters: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfCheck:
    """One thing an agent looked at when it checked itself.

    Attributes:
        name: what it looked at.
        passed: whether it is as it should be.
        detail: what was found, in one sentence; where it did not pass, how to fix it.
    """

    name: str
    passed: bool
    detail: str
