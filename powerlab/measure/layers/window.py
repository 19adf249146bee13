"""Repeat one step until its power is steady: windows, their recordings and their figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import TotalFormula, Trace
from powerlab.domain.run import Finding, Verdict
from powerlab.measure.energy.total import TotalEnergy, total_energy
from powerlab.measure.layers.messages import Repeated, RepeatStep
from powerlab.measure.recording.background_load import BackgroundLoad, background_limit_cores
from powerlab.measure.recording.clocks import suspended_since_boot_s
from powerlab.measure.recording.rails import Meter, Recording
from powerlab.measure.steady.drift import Answer, drift
from powerlab.measure.validity import Evidence, judge, usable_energy
from powerlab.measure.worker.process import Worker, WorkerError
from powerlab.throttling.guard import Guard

MOST_WINDOWS = 3
"""So often a step is repeated for a window; then its last one counts, steady or not, and the figure says so."""
STEADY_SHARE = 0.02
"""A drift of the power over a window of more than this share of its mean is no steady state."""
PASSING = frozenset({"power-gap", "suspended", "stale-sensor"})
"""Rules whose verdict may be another one a moment later."""
_BINS = 12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepWindow:
    """What a step gave.

    Attributes:
        step: its number in the plan, or ``WHOLE``.
        window_ns: the window that counts, on CLOCK_MONOTONIC.
        each_ns: how long a repetition took, the mean of each chunk, shape (chunks,).
        step_ns: of the whole, what every step took of each inference as the engine saw it, shape (chunks, steps); no
            columns for a single step.
        energy: of the window; None where power is not recorded or may not be used.
        findings: what the validity rules said.
        steady: whether the window showed no drift of the power.
        windows: how many were needed.
    """

    step: int
    window_ns: tuple[int, int]
    each_ns: NDArray[np.float64]
    step_ns: NDArray[np.float64]
    energy: TotalEnergy | None
    findings: tuple[Finding, ...]
    steady: bool
    windows: int


def steady_window(worker: Worker, meter: Meter, step: int, duration_s: float) -> StepWindow:
    """Repeat a step for windows until one shows no drift of the power, or :data:`MOST_WINDOWS` are over.

    A window whose power what passes made void (a busy machine's gap, a suspension) is repeated, too.

    Raises:
        WorkerError: the worker died or did not answer.
        PowerlabError: the engine refused, for a reason the user can fix.
    """
    number = 0
    while True:
        number += 1
        repeated, evidence = _recorded(worker, meter, step, duration_s)
        findings = judge(evidence) if meter.total is not None else ()
        steady = evidence.total is None or is_steady(evidence.total, evidence.traces, evidence.window_ns)
        spoilt = any(finding.rule in PASSING and finding.verdict is Verdict.VOID for finding in findings)
        if (steady and not spoilt) or number == MOST_WINDOWS:
            break
    return StepWindow(
        step=step,
        window_ns=evidence.window_ns,
        each_ns=(repeated.end_ns - repeated.start_ns) / repeated.count,
        step_ns=repeated.step_ns,
        energy=usable_energy(evidence, findings),
        findings=tuple(finding for finding in findings if finding.rule != "too-few-samples"),
        steady=steady,
        windows=number,
    )


def is_steady(total: TotalFormula, traces: Sequence[Trace], window_ns: tuple[int, int]) -> bool:
    """Whether the power shows no drift over a window that is more than a share of its mean and more than noise.

    Where the rails do not cover the window nothing can be said, and nothing is gained by another window.
    """
    edges = np.linspace(*window_ns, _BINS + 1).astype(np.int64)
    middle_s = (edges[:-1] + edges[1:] - 2 * edges[0]) / 2e9
    try:
        power_w = np.array(
            [total_energy(total, traces, (int(begin), int(end))).power_w for begin, end in pairwise(edges)]
        )
    except (KeyError, ValueError):
        return True
    found = drift(middle_s, power_w, (window_ns[1] - window_ns[0]) / 1e9)
    return found.answer(STEADY_SHARE * abs(float(power_w.mean()))) is not Answer.DRIFTING


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Chunks:
    """A worker's answer, checked: int64 of shape (chunks,), and float64 of shape (chunks, steps)."""

    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    count: NDArray[np.int64]
    step_ns: NDArray[np.float64]


def chunks_of(reply: Repeated) -> _Chunks:
    """Return what a worker answered as arrays.

    Raises:
        WorkerError: they do not belong together.
    """
    try:
        start_ns, end_ns, count, step_ns = (
            np.frombuffer(data, dtype="<i8").astype(np.int64)
            for data in (reply.start_ns, reply.end_ns, reply.count, reply.step_ns)
        )
        rows = step_ns.reshape(start_ns.size, -1).astype(np.float64)
    except ValueError as error:
        raise WorkerError("the worker answered with garbage: its times are cut off.") from error
    ordered = start_ns.size == end_ns.size == count.size > 0 and np.all(end_ns > start_ns)
    if not (ordered and np.all(count > 0) and np.all(np.diff(start_ns) > 0)):
        raise WorkerError("the worker answered with garbage: its times are not in order.")
    return _Chunks(start_ns=start_ns, end_ns=end_ns, count=count, step_ns=rows)


def _recorded(worker: Worker, meter: Meter, step: int, duration_s: float) -> tuple[_Chunks, Evidence]:
    """Let the worker repeat a step for one window with the recorder on."""
    slept_s = suspended_since_boot_s()
    background = None if meter.sysroot.simulated else BackgroundLoad(worker.pid)
    margin_s = 2 * meter.margin_s
    with Guard(meter.sysroot) as guard, Recording(meter) as recording:
        asked_s = duration_s + 2 * margin_s
        chunks = chunks_of(
            worker.ask(RepeatStep(step=step, duration_s=duration_s, margin_s=margin_s), asked_s, Repeated)
        )
        background_cores = None if background is None else background.cores()
        traces = recording.finish()
        throttled = guard.finish()
    return chunks, Evidence(
        window_ns=(int(chunks.start_ns[0]), int(chunks.end_ns[-1])),
        inference_count=int(chunks.count.sum()),
        total=meter.total,
        traces=traces,
        sample_period_s=meter.sample_period_s,
        background_cores=background_cores,
        background_limit_cores=background_limit_cores(),
        suspended_s=suspended_since_boot_s() - slept_s,
        power_failure=recording.failure,
        lively=meter.lively,
        throttled=throttled,
    )
