"""Record the rails of the total during a run and the idle baseline."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Rail, TotalFormula, Trace
from powerlab.measure.energy.total import TotalEnergy
from powerlab.measure.evidence import Evidence
from powerlab.measure.nodes import Nodes, Recorded
from powerlab.measure.recording.background_load import BackgroundLoad
from powerlab.measure.recording.clocks import suspended_since_boot_s
from powerlab.measure.recording.margins import margin_s
from powerlab.measure.recording.temperature import Thermometer
from powerlab.measure.validity import judge, usable_energy
from powerlab.power.sampling.recorder import Recorder
from powerlab.sysroot import Sysroot
from powerlab.throttling.guard import Guard


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """How the board's power is read.

    Attributes:
        sysroot: where the sensors are.
        total: the formula of the board's power; None where no rail can be read.
        rails: the rails to record: those of the formula. What they say goes into the traces, also where it differs
            from what their sources say.
        sample_period_s: time between two samples.
        lively: by key, how often a second rails changed that are known to change at every load.
        nodes: the other devices of a cluster, whose rails are among ``rails``; None where there are none.
    """

    sysroot: Sysroot
    total: TotalFormula | None
    rails: Sequence[Rail]
    sample_period_s: float
    lively: Mapping[str, float] = field(default_factory=dict)
    nodes: Nodes | None = None

    @property
    def own(self) -> tuple[Rail, ...]:
        """Return the rails of this device."""
        others = () if self.nodes is None else {rail.key for rail in self.nodes.rails}
        return tuple(rail for rail in self.rails if rail.key not in others)

    @property
    def margin_s(self) -> float:
        """How long to record before and after a window: enough updates of the slowest rail to find its edges."""
        return margin_s(self.rails, self.sample_period_s)

    @property
    def margin_ns(self) -> int:
        """The same in ns."""
        return round(self.margin_s * 1e9)


class Recording:
    """Power recorded between entering and :meth:`finish`; a meter that fails is a finding, and no exception.

    Attributes:
        failure: what kept the power from being recorded; None where all went well.
        core_share: after :meth:`finish`, processor time of the sampling as a share of one core.
        beside: after :meth:`finish`, what other devices of a cluster recorded.
    """

    def __init__(self, meter: Meter, every_period: bool = False) -> None:
        """Record nothing yet; with ``every_period`` polled rails are read as often as files are."""
        self._every_period = every_period
        self.failure: str | None = None
        self.core_share = 0.0
        self.beside = Recorded()
        self._meter = meter
        self._recorder: Recorder | None = None

    def __enter__(self) -> Self:
        keys = tuple(rail.key for rail in self._meter.own)
        if self._meter.nodes is not None:
            self._meter.nodes.record()
        if keys:
            try:
                self._recorder = Recorder(
                    self._meter.sysroot, keys, self._meter.sample_period_s, every_period=self._every_period
                )
                self._recorder.start()
            except PowerlabError as error:
                self.failure = str(error)
        return self

    def finish(self) -> tuple[Trace, ...]:
        """End recording and return what there is; no traces where the meter failed or has no rails."""
        own = self._finish_own()
        if self._meter.nodes is None:
            return own
        self.beside = self._meter.nodes.recorded()
        self.failure = self.failure or self.beside.failure
        return () if self.failure else (*own, *self.beside.traces)

    def _finish_own(self) -> tuple[Trace, ...]:
        if self._recorder is None or self.failure is not None:
            return ()
        try:
            rails = {rail.key: rail for rail in self._meter.rails}
            return tuple(replace(trace, rail=rails[trace.rail.key]) for trace in self._recorder.stop())
        except PowerlabError as error:
            self.failure = str(error)
        except Exception as error:
            # A fault in a source, a vendor's library perhaps: it costs this run its watts, and not the sweep its runs.
            self.failure = f"the power source failed while recording ({type(error).__name__}: {error})"
        finally:
            self.core_share = self._recorder.core_share
        return ()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._recorder is not None:
            self._recorder.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleBaseline:
    """What the board used without load.

    Attributes:
        energy: its energy over the baseline.
        window_ns: when that was, on CLOCK_MONOTONIC.
        traces: what was recorded around it.
        beside: temperatures and clocks meanwhile, which no rule looks at.
        background_cores: cores that other processes kept busy meanwhile; None on a simulated board, where they say
            nothing.
        throttled: in sentences, how the device was slowed down meanwhile.
    """

    energy: TotalEnergy
    window_ns: tuple[int, int]
    traces: tuple[Trace, ...] = ()
    beside: tuple[Trace, ...] = ()
    background_cores: float | None = None
    throttled: tuple[str, ...] = ()


def most_cores(found: Iterable[float | None]) -> float | None:
    """Return the most cores that others kept busy, of several devices or times; None where none of them says."""
    return max((one for one in found if one is not None), default=None)


def idle_baseline(meter: Meter, duration_s: float) -> IdleBaseline | None:
    """Record for a time without load.

    None where no duration is asked, or where the power may not be used: the runs that follow have the same meter and
    say what is wrong with it.
    """
    if meter.total is None or duration_s <= 0:
        return None
    slept_s = suspended_since_boot_s()
    background = None if meter.sysroot.simulated else BackgroundLoad()
    with Guard(meter.sysroot) as guard, Thermometer(meter.sysroot) as thermometer, Recording(meter) as recording:
        time.sleep(meter.margin_s)
        start_ns = time.monotonic_ns()
        time.sleep(duration_s)
        end_ns = time.monotonic_ns()
        time.sleep(meter.margin_s)
        traces = recording.finish()
        throttled = (*guard.finish(), *recording.beside.throttled)
        zones = (*thermometer.finish(), *recording.beside.zones)
    evidence = Evidence(
        window_ns=(start_ns, end_ns),
        inference_count=0,
        total=meter.total,
        traces=traces,
        sample_period_s=meter.sample_period_s,
        power_failure=recording.failure,
        suspended_s=suspended_since_boot_s() - slept_s,
        lively=meter.lively,
    )
    energy = usable_energy(evidence, judge(evidence))
    if energy is None:
        return None
    own = None if background is None else background.cores()
    background_cores = most_cores((own, recording.beside.background_cores))
    return IdleBaseline(
        energy=energy,
        window_ns=(start_ns, end_ns),
        traces=traces,
        beside=zones,
        background_cores=background_cores,
        throttled=throttled,
    )
