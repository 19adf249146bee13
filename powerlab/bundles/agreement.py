"""A repeated sweep beside the one in a bundle: which figures agree, which differ, and what else is different."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from powerlab.analysis.matches import Match, between_sweeps
from powerlab.domain.device import Device
from powerlab.domain.quantity import METRICS
from powerlab.domain.run import Run

REPEATED = (
    "latency_p50_ms",
    "latency_p99_ms",
    "server_queries_per_s",
    "throughput_img_per_s",
    "power_w",
    "idle_power_w",
    "energy_per_image_j",
    "efficiency_img_per_s_per_w",
)
"""The figures that are held against each other."""


class Agreement(StrEnum):
    """What came of one figure."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNDECIDED = "undecided"
    SIDE_BY_SIDE = "side by side only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """One figure of one point, then and now; ``match`` has now's over then's."""

    match: Match
    agreement: Agreement


def repeated(then: Sequence[Run], now: Sequence[Run], *, one_device: bool) -> tuple[Repeated, ...]:
    """Return every figure of every point that both sweeps have.

    Figures agree where the 95 % interval of their ratio contains 1. They differ where a difference may be claimed, all
    points considered (Holm, 1979); a figure in between is undecided, and so is one without an interval.
    """
    matches = [
        match
        for name in REPEATED
        for match in between_sweeps(now, then, name, one_device=one_device)
        if match.one.metric is not None or match.other.metric is not None
    ]
    return tuple(Repeated(match=match, agreement=_agreement(match)) for match in matches)


def _agreement(match: Match) -> Agreement:
    if match.ratio is None:
        return Agreement.SIDE_BY_SIDE
    if match.ratio.differs is False:
        return Agreement.AGREES
    return Agreement.DIFFERS if match.claimed else Agreement.UNDECIDED


def title(match: Match) -> str:
    """Return a figure's name with its unit."""
    return f"{METRICS[match.metric].title}, {METRICS[match.metric].unit}"


def changes(then: Device, now: Device, runs_then: Sequence[Run], runs_now: Sequence[Run]) -> Iterator[str]:
    """Yield in sentences what is not the same, and may be why figures differ."""
    if then.simulated != now.simulated:
        yield f"One is a simulated board and the other is not: {then.name}, then {now.name}."
    for what, was, is_now in (
        ("Board", then.board, now.board),
        ("Processor", then.cpu_model, now.cpu_model),
        ("Architecture", then.architecture, now.architecture),
        ("Cores", str(then.core_count), str(now.core_count)),
        ("Kernel", _kernels(then, runs_then), _kernels(now, runs_now)),
        ("Microcode", _states(runs_then, "microcode"), _states(runs_now, "microcode")),
        ("powerlab", _versions(runs_then), _versions(runs_now)),
        ("Engines", _engines(runs_then), _engines(runs_now)),
        ("Power covers", _scope(runs_then), _scope(runs_now)),
        ("Governors", _governors(runs_then), _governors(runs_now)),
    ):
        if was != is_now:
            yield f"{what}: {was or 'unknown'}, now {is_now or 'unknown'}."


def _joined(words: Iterator[str]) -> str:
    return ", ".join(sorted({word for word in words if word}))


def _kernels(device: Device, runs: Sequence[Run]) -> str:
    return _states(runs, "kernel") or device.kernel


def _states(runs: Sequence[Run], name: str) -> str:
    states = (run.conditions.device_state for run in runs if run.conditions is not None)
    return _joined(str(getattr(state, name)) for state in states if state is not None)


def _versions(runs: Sequence[Run]) -> str:
    return _joined(run.conditions.measured_with for run in runs if run.conditions is not None)


def _engines(runs: Sequence[Run]) -> str:
    return _joined(
        f"{run.point.workload.engine} {run.conditions.engine_version}".strip()
        for run in runs
        if run.conditions is not None
    )


def _scope(runs: Sequence[Run]) -> str:
    return _joined(run.total.scope for run in runs if run.total is not None)


def _governors(runs: Sequence[Run]) -> str:
    states = (run.conditions.device_state for run in runs if run.conditions is not None)
    return _joined(clock.governor for state in states if state is not None for clock in state.cpu_clocks)
