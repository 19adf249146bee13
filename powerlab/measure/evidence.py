"""The input of validity rules: everything a run stores, and nothing that only the measuring process knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from powerlab import __version__
from powerlab.domain.accuracy import LabelledAccuracy, OutputAccuracy
from powerlab.domain.device_state import ClockOffset, DeviceState
from powerlab.domain.power import TotalFormula, Trace
from powerlab.domain.run import Conditions, NodePower
from powerlab.domain.workload import Workload
from powerlab.measure.energy.clocks import clock_errors_of
from powerlab.measure.energy.total import TotalEnergy

BACKGROUND_CORES = 0.5
"""Cores that others may keep busy on a machine of any size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the rules look at.

    Attributes:
        window_ns: the timed part.
        inference_count: queries answered in it.
        total: the formula of the board's power; None where no rail can be read.
        traces: what was recorded.
        sample_period_s: the planned time between two samples.
        workload: what was run; None for an idle baseline.
        latency_p99_ms: the 99th percentile of the queries' latency; None where there were none.
        stalled_s: how long the queries stood still.
        missed_shares: by key of a rail that looks part of the time, the share of a query that it missed.
        idle_before: energy of the idle baseline before the run; None where there was none that may be used.
        idle_after: the same after it.
        idle_traces: what was recorded around both, each with its part.
        drift: what the mode controller says changed; None where the mode held.
        suspended_s: how long the machine was suspended meanwhile.
        power_failure: what kept the power from being recorded; None where nothing did.
        background_cores: cores that others kept busy; None where that says nothing.
        idle_background_cores: the same while the idle baseline was measured.
        background_limit_cores: how many cores others may keep busy on this machine.
        load_ns: when the load began, on CLOCK_MONOTONIC; None where there was none, or nobody knows.
        lively: by key, how often a second rails changed that are known to change at every load.
        throttled: in sentences, how the device was slowed down meanwhile.
        idle_throttled: the same while the idle baseline was measured.
        idle_s: how long an idle baseline was asked for.
        idle_before_ns: the idle baseline before the run; None where there was none.
        idle_after_ns: the one after it.
        clock_jump_s: by how much the wall clock was set meanwhile.
        warm_up_s: how long the warm-up took.
        unsteady: in sentences, what had not become steady when the warm-up ended.
        sampling_core_share: processor time of powerlab's own sampling as a share of one core; None where it was not
            counted.
        measured_with: the version of powerlab that measures.
        engine_version: the version of the engine that runs the model; empty where nobody knows.
        processor_name: what the engine calls the graphics processor that computed; empty where none did.
        output_difference: how far its outputs were from the built-in engine's; None where nothing was compared.
        output_accuracy: how exact the outputs of a low precision are; None in fp32, and where nothing was compared.
        labelled_accuracy: how often its answer was the label; None where no labelled images were given.
        device_state: the device's software, clocks and fans.
        clock_offset: how the device's wall clock stood to its server's; the agent adds it, who knows the server.
        temperature_guard: what the temperature guard watched and the peak; empty where the run had no limit.
        traces_shed: why the traces were thrown away on the device; there is no evidence then, beside this sentence.
        peak_memory_bytes: the most memory that the worker process had resident since it started; None where it was not
            read.
        warm_up_ns: when the warm-up began and ended; None where there was none.
        nodes: the devices that trained together; none where one device ran the model.
    """

    window_ns: tuple[int, int]
    inference_count: int
    total: TotalFormula | None
    traces: Sequence[Trace]
    sample_period_s: float
    workload: Workload | None = None
    latency_p99_ms: float | None = None
    stalled_s: float = 0.0
    missed_shares: Mapping[str, float] = field(default_factory=dict)
    idle_before: TotalEnergy | None = None
    idle_after: TotalEnergy | None = None
    idle_traces: Sequence[Trace] = ()
    drift: str | None = None
    background_cores: float | None = None
    idle_background_cores: float | None = None
    background_limit_cores: float = BACKGROUND_CORES
    power_failure: str | None = None
    suspended_s: float = 0.0
    load_ns: int | None = None
    lively: Mapping[str, float] = field(default_factory=dict)
    throttled: Sequence[str] = ()
    idle_throttled: Sequence[str] = ()
    sampling_core_share: float | None = None
    idle_s: float = 0.0
    idle_before_ns: tuple[int, int] | None = None
    idle_after_ns: tuple[int, int] | None = None
    clock_jump_s: float = 0.0
    warm_up_s: float = 0.0
    unsteady: Sequence[str] = ()
    measured_with: str = __version__
    engine_version: str = ""
    processor_name: str = ""
    output_difference: float | None = None
    output_accuracy: OutputAccuracy | None = None
    labelled_accuracy: LabelledAccuracy | None = None
    device_state: DeviceState | None = None
    clock_offset: ClockOffset | None = None
    temperature_guard: str = ""
    traces_shed: str = ""
    peak_memory_bytes: int | None = None
    warm_up_ns: tuple[int, int] | None = None
    nodes: Sequence[NodePower] = ()

    @property
    def clock_errors_s(self) -> dict[str, float]:
        """By key of a rail, by how much its times may be wrong."""
        return clock_errors_of(self.nodes)

    @property
    def window_s(self) -> float:
        """Length of the timed part."""
        return (self.window_ns[1] - self.window_ns[0]) / 1e9

    def conditions(self) -> Conditions:
        """Return what a run keeps of this beside its traces."""
        return Conditions(**{one.name: getattr(self, one.name) for one in fields(Conditions)})

    def total_traces(self) -> list[Trace]:
        """Return the traces of the formula's rails that were recorded, in the formula's order."""
        by_key = {trace.rail.key: trace for trace in self.traces}
        return [by_key[key] for key in (() if self.total is None else self.total.rails) if key in by_key]
