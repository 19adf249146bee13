"""A plan as the command that carries it out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace

from powerlab.domain.mode import CURRENT_MODE_NAME
from powerlab.domain.rigour import LEVELS, Rigour
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.domain.workload import Preparation, Processor, Recompute, Scenario, WorkloadKind

_USUAL_SEARCH_PERCENT = 1.0
_LEVEL_OPTIONS = (
    ("--repeats", "repeats"),
    ("--duration", "duration_s"),
    ("--min-inferences", "min_inferences"),
    ("--warm-up", "warm_up_s"),
    ("--idle", "idle_s"),
    ("--cool-down", "cool_down_s"),
)


def profile_command(plan: SweepPlan, board: str | None = None) -> str:
    """Return the ``powerlab profile`` that makes this plan; what has its usual value is left out.

    Several devices together take a ``powerlab sweep create``, whose devices the plan does not name.

    Args:
        plan: what was run.
        board: the simulated board; None for a real device.
    """
    words = ["powerlab", "profile", *plan.models, *_options(plan)]
    if plan.nodes > 1:
        devices = ",".join(f"DEVICE{number}" for number in range(1, plan.nodes + 1))
        return shlex.join(["powerlab", "sweep", "create", *words[2:], "--devices", devices])
    return shlex.join(words if board is None else [*words, "--board", board])


def plan_of_point(plan: SweepPlan, point: Point) -> SweepPlan:
    """Return the plan that measures one point of a sweep as the sweep did."""
    load = point.workload
    return replace(
        plan,
        models=(load.model,),
        threads=(point.threads,),
        batch_sizes=(load.batch_size,),
        modes=(point.mode,),
        engines=(load.engine,),
        processors=(load.processor,),
        workload=load.kind,
        optimizers=(load.optimizer,) if load.optimizer else (),
        precisions=(load.precision,),
        scenarios=(load.scenario,),
        slices=(load.slices,),
        queues=(load.queues,),
        recompute=(load.recompute,),
        spin_us=(point.spin_us,),
        cores=(point.cores,),
        preparation=load.preparation,
        latency_bound_ms=load.latency_bound_ms,
        search_percent=0.0,
        search_goals=(),
        proposed_modes=(),
        nodes=load.nodes,
    )


def _options(plan: SweepPlan) -> Iterator[str]:
    if plan.workload is not WorkloadKind.INFERENCE:
        yield from ("--workload", plan.workload.value)
    yield from ("--threads", _listed(plan.threads))
    for option, values, usual in (
        ("--batch", plan.batch_sizes, (1,)),
        ("--modes", tuple(one for one in plan.modes if one not in plan.proposed_modes), (CURRENT_MODE_NAME,)),
        ("--optimizer", plan.optimizers, ()),
        ("--engine", plan.engines, ("builtin",)),
        ("--processor", tuple(one.value for one in plan.processors), (Processor.CPU.value,)),
        ("--precision", plan.precisions, ("fp32",)),
        ("--scenario", tuple(one.value for one in plan.scenarios), (Scenario.SINGLE_STREAM.value,)),
        ("--slices", plan.slices, (1,)),
        ("--recompute", tuple(one.value for one in plan.recompute), (Recompute.NO.value,)),
        ("--queues", plan.queues, (1,)),
        ("--spin-us", plan.spin_us, (None,)),
    ):
        if values != usual:
            yield from (option, _listed(values))
    for cores in plan.cores if plan.cores != ("",) else ():
        yield from ("--cores", cores)
    if plan.preparation is not Preparation.OUTSIDE:
        yield from ("--preparation", plan.preparation.value)
    if plan.latency_bound_ms:
        yield from ("--latency-bound-ms", _number(plan.latency_bound_ms))
    if plan.seed:
        yield from ("--seed", str(plan.seed))
    yield from _care(plan)
    yield from _search(plan)
    for option, limit in (
        ("--max-temperature-c", plan.max_temperature_c),
        ("--start-below-temperature-c", plan.start_below_temperature_c),
    ):
        if limit is not None:
            yield from (option, _number(limit))
    for option, name in (("--longest-cooling", "longest_cooling_s"), ("--min-sqnr", "least_sqnr_db")):
        if getattr(plan, name) != SweepPlan.__dataclass_fields__[name].default:
            yield from (option, _number(getattr(plan, name)))


def _care(plan: SweepPlan) -> Iterator[str]:
    """Yield the rigour, and what differs from its level."""
    level = LEVELS[plan.rigour]
    if plan.rigour is not Rigour.QUICK:
        yield from ("--rigour", plan.rigour.value)
    if plan.until_percent:
        yield from ("--until", f"{_number(plan.until_percent)}%")
    for option, name in _LEVEL_OPTIONS:
        if getattr(plan, name) != getattr(level, name):
            yield from (option, _number(getattr(plan, name)))
    # A shorter warm-up than the level's shortens the longest one with it, unless that is given.
    implied = level.longest_warm_up_s * min(1.0, plan.warm_up_s / level.warm_up_s)
    if plan.longest_warm_up_s != implied:
        yield from ("--longest-warm-up", _number(plan.longest_warm_up_s))


def _search(plan: SweepPlan) -> Iterator[str]:
    """Yield what a search is told; nothing where every point is measured."""
    if not plan.search_percent:
        return
    yield "--search"
    if plan.search_percent != _USUAL_SEARCH_PERCENT:
        yield from ("--search-epsilon", f"{_number(plan.search_percent)}%")
    if plan.search_goals:
        yield from ("--goal", _listed(plan.search_goals))
    if plan.proposed_modes:
        yield "--propose-modes"


def _listed(values: Sequence[object]) -> str:
    return ",".join(map(str, values))


def _number(value: float) -> str:
    """Return a number that is read back as the same one."""
    return repr(int(value)) if value == int(value) else repr(value)
