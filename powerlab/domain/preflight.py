"""Check that a device can run a plan, before anything is changed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from powerlab.domain.choices import meant
from powerlab.domain.device import Capabilities, Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import PowerMode, reboot_command
from powerlab.domain.model_name import stored_model
from powerlab.domain.rigour import TIMES_AND_COUNTS, Rigour, falls_short
from powerlab.domain.sweep import SEARCH_GOALS, SweepPlan
from powerlab.domain.training import TRAINERS, training_complaints
from powerlab.domain.workload import MULTI_STREAM_IMAGES, Preparation, Processor, Recompute, Scenario, WorkloadKind

MIN_REPEATS = 3
"""Fewer repeats say nothing about the scatter between runs."""

MOST_RUNS = 100_000
"""More runs than any sweep can want; a slip of the finger must not fill the memory with a schedule."""

MOST_POINTS_OF_A_SEARCH = 5_000
"""A search looks at every point before every run."""

LARGEST_NUMBER = 2**31 - 1
"""Integers of a plan go no further: every database and every reader of JSON holds them."""

_CPU, _GPU = Processor.CPU, Processor.GPU
ENGINES: Mapping[str, tuple[Processor, ...]] = {
    "builtin": (_CPU, _GPU),
    "onnxruntime": (_CPU, _GPU),
    "openvino": (_CPU, _GPU),
    "torch": (_CPU, _GPU),
    "torch-compile": (_CPU, _GPU),
    "litert": (_CPU,),
    "ncnn": (_CPU, _GPU),
    "onnxruntime-tensorrt": (_GPU,),
    "tensorrt": (_GPU,),
}
"""Names a plan's ``engine`` may hold, and what each can compute on: an engine is a module of that name (``_`` for
``-``) in ``powerlab.backends``."""

SPREAD_OVER_QUEUES = ("builtin",)
"""Engines that spread the slices of a batch over queues of a graphics processor."""


def check_plan(
    plan: SweepPlan,
    device: Device,
    capabilities: Capabilities,
    engines: Sequence[str] = tuple(ENGINES),
    invented_pass: bool = False,
) -> None:
    """Refuse a plan the device cannot carry out; arguments as of :func:`complaints`.

    Raises:
        PowerlabError: the first thing that is wrong, and how to fix it.
    """
    found = complaints(plan, device, capabilities, engines, invented_pass)
    if found:
        raise PowerlabError(found[0])


def complaints(
    plan: SweepPlan,
    device: Device,
    capabilities: Capabilities,
    engines: Sequence[str] = tuple(ENGINES),
    invented_pass: bool = False,
) -> tuple[str, ...]:
    """Return all that keeps a device from carrying out a plan, in sentences that say how to fix it.

    Where a list is empty or a number is too large to reckon with, that alone is said.

    Args:
        plan: what is asked for.
        device: where.
        capabilities: what the device says it can do.
        engines: names a plan's engine may have.
        invented_pass: let a mode pass that is not listed but made of parts such as ``cores=3``: only the device itself
            can tell whether it can set it.
    """
    return (
        tuple(_lists(plan)) or tuple(_sizes(plan)) or tuple(_others(plan, device, capabilities, engines, invented_pass))
    )


def _others(
    plan: SweepPlan, device: Device, capabilities: Capabilities, engines: Sequence[str], invented_pass: bool
) -> Iterator[str]:
    if plan.repeats < MIN_REPEATS:
        yield f"{plan.repeats} repeats cannot show the scatter between runs; ask for at least {MIN_REPEATS}."
    yield from _models(plan)
    yield from _numbers(plan)
    yield from _rigour(plan)
    yield from _search(plan)
    yield from _engines(plan, engines)
    yield from _OF_WORKLOAD[plan.workload](plan, device, capabilities)
    yield from _scenarios(plan)
    yield from _slices(plan)
    yield from _queues(plan, device, capabilities)
    for cores in filter(None, plan.cores):
        yield from _cores(cores, plan)
    yield from _threads(plan, device)
    yield from _modes(plan, device, capabilities, invented_pass)
    yield from _temperatures(plan, device, capabilities)


def _lists(plan: SweepPlan) -> Iterator[str]:
    lists: tuple[tuple[str, tuple[object, ...]], ...] = (
        ("models", plan.models),
        ("threads", plan.threads),
        ("batch sizes", plan.batch_sizes),
        ("modes", plan.modes),
        ("engines", plan.engines),
        ("processors", plan.processors),
        ("optimizers", plan.optimizers),
        ("precisions", plan.precisions),
        ("scenarios", plan.scenarios),
        ("counts of slices", plan.slices),
        ("choices to recompute", plan.recompute),
        ("counts of queues", plan.queues),
        ("spin times", plan.spin_us),
        ("lists of cores", plan.cores),
    )
    for title, values in lists:
        if not values and title != "optimizers":  # only training has some
            yield f"the plan has no {title}; name at least one."
        duplicate = next((value for index, value in enumerate(values) if value in values[:index]), None)
        if duplicate is not None:
            yield f"{duplicate} stands twice among the {title}; name every value once."


def _models(plan: SweepPlan) -> Iterator[str]:
    for model in plan.models:
        try:
            stored_model(model)
        except PowerlabError as error:
            yield str(error)


def _numbers(plan: SweepPlan) -> Iterator[str]:
    def positive(value: float) -> bool:
        return math.isfinite(value) and value > 0

    def not_negative(value: float) -> bool:
        return math.isfinite(value) and value >= 0

    checks: tuple[tuple[str, tuple[float, ...], Callable[[float], bool], str], ...] = (
        ("count of threads", plan.threads, positive, "at least 1"),
        ("batch size", plan.batch_sizes, positive, "at least 1"),
        ("duration", (plan.duration_s,), positive, "a time above 0 s"),
        ("minimum count of inferences", (plan.min_inferences,), positive, "at least 1"),
        ("sample period", (plan.sample_period_s,), positive, "a time above 0 s"),
        ("warm-up", (plan.warm_up_s,), not_negative, "0 s or more"),
        ("longest warm-up", (plan.longest_warm_up_s,), not_negative, "0 s or more"),
        ("idle baseline", (plan.idle_s,), not_negative, "0 s or more"),
        ("cool-down", (plan.cool_down_s,), not_negative, "0 s or more"),
        ("longest cooling", (plan.longest_cooling_s,), not_negative, "0 s or more"),
        ("count of slices", plan.slices, positive, "at least 1"),
        ("count of queues", plan.queues, positive, "at least 1"),
        ("spin time", tuple(us for us in plan.spin_us if us is not None), not_negative, "0 us or more"),
        ("least signal to quantisation noise", (plan.least_sqnr_db,), math.isfinite, "a number of dB"),
        ("latency bound", (plan.latency_bound_ms,), not_negative, "a time above 0 ms"),
        ("width that --until asks for", (plan.until_percent,), not_negative, "a percentage above 0"),
        ("advantage that --search-epsilon asks for", (plan.search_percent,), not_negative, "a percentage above 0"),
    )
    for title, values, good, wanted in checks:
        for value in values:
            if not good(value):
                yield f"the {title} is {value:g}; give {wanted}."


def _sizes(plan: SweepPlan) -> Iterator[str]:
    spins = (us for us in plan.spin_us if us is not None)
    whole = (*plan.threads, *plan.batch_sizes, *plan.slices, *plan.queues, *spins, plan.min_inferences, abs(plan.seed))
    if max(whole) > LARGEST_NUMBER:
        yield f"the plan holds the number {max(whole)}; give integers up to {LARGEST_NUMBER}."
    run_count = plan.repeats * plan.point_count
    if run_count > MOST_RUNS:
        yield f"the plan asks for {run_count} runs; a sweep has at most {MOST_RUNS}, so ask for less."


def _rigour(plan: SweepPlan) -> Iterator[str]:
    """A level's name stands for its times: a plan with less is refused, and not renamed behind its user's back."""
    given = {name: getattr(plan, name) for name in TIMES_AND_COUNTS}
    short = falls_short(plan.rigour, given)
    if short:
        yield (
            f"the plan calls itself {plan.rigour}, but {short}; give at least that, or ask for the rigour "
            f"{Rigour.QUICK}."
        )


def _search(plan: SweepPlan) -> Iterator[str]:
    unknown = [goal for goal in plan.search_goals if goal not in SEARCH_GOALS]
    if unknown:
        yield f"the goal {unknown[0]!r} is not known; choose from: {', '.join(SEARCH_GOALS)}."
    missing = [mode for mode in plan.proposed_modes if mode not in plan.modes]
    if missing:
        yield f"the proposed mode {missing[0]!r} is not among the plan's modes; name it there too, or leave it out."
    if plan.search_percent and plan.until_percent:
        yield "a search repeats what it needs by itself, so --until cannot be asked for with --search; leave one out."
    if plan.search_percent and plan.point_count > MOST_POINTS_OF_A_SEARCH:
        yield (
            f"a search looks at {MOST_POINTS_OF_A_SEARCH} points at most and the plan has {plan.point_count}; "
            "ask for fewer values."
        )


def _engines(plan: SweepPlan, engines: Sequence[str]) -> Iterator[str]:
    for engine in plan.engines:
        if engine not in engines:
            yield f"the engine {engine!r} is not known{meant(engine, engines)}; choose one of: {', '.join(engines)}."
        for processor in plan.processors:
            if processor not in ENGINES.get(engine, plan.processors):
                able = [name for name in engines_on((processor,)) if name in engines]
                yield (
                    f"the engine {engine} does not compute on the {processor}; leave out one of them, or choose from: "
                    f"{', '.join(able)}."
                )


def _of_inference(plan: SweepPlan, _device: Device, _capabilities: Capabilities) -> Iterator[str]:
    if plan.nodes > 1:
        yield "several devices train together, and infer by themselves; add --workload train, or name one device."
    if plan.optimizers:
        yield "an optimizer is for training alone; add --workload train, or leave it out."
    if Recompute.YES in plan.recompute:
        yield "activations are computed again in training alone; add --workload train, or leave --recompute out."


_OF_WORKLOAD: Mapping[WorkloadKind, Callable[[SweepPlan, Device, Capabilities], Iterator[str]]] = {
    WorkloadKind.INFERENCE: _of_inference,
    WorkloadKind.TRAIN: training_complaints,
}


def engines_for(plan: SweepPlan) -> tuple[str, ...]:
    """Return the engines that can do what a plan does with models, on all its processors."""
    able = engines_on(plan.processors)
    return tuple(engine for engine in able if plan.workload is not WorkloadKind.TRAIN or engine in TRAINERS)


def engines_on(processors: Iterable[Processor]) -> tuple[str, ...]:
    """Return the engines that compute on every one of these."""
    wanted = set(processors)
    return tuple(engine for engine, able in ENGINES.items() if wanted.issubset(able))


def _scenarios(plan: SweepPlan) -> Iterator[str]:
    server = Scenario.SERVER in plan.scenarios
    if server and plan.latency_bound_ms <= 0:
        yield ("the server scenario needs a bound on its latency; give one, such as --latency-bound-ms 15.")
    if not server and plan.latency_bound_ms > 0:
        yield "a latency bound is for the server scenario alone; add --scenario server, or leave it out."
    uneven = [batch_size for batch_size in plan.batch_sizes if batch_size > 0 and MULTI_STREAM_IMAGES % batch_size]
    if Scenario.MULTI_STREAM in plan.scenarios and uneven:
        yield (
            f"a query of the multi-stream scenario holds {MULTI_STREAM_IMAGES} images, which batches of "
            f"{', '.join(map(str, uneven))} cannot share evenly; ask for batches of 1, 2, 4 or {MULTI_STREAM_IMAGES}."
        )


def _slices(plan: SweepPlan) -> Iterator[str]:
    """A slice needs an image, on the cores a thread of its own where it does not train, and all slices are alike."""
    together = Processor.CPU in plan.processors and plan.workload is WorkloadKind.INFERENCE
    threads = plan.threads if together else ()
    for slices in (slices for slices in plan.slices if slices > 1):
        for title, values in (("threads", threads), ("a batch", plan.batch_sizes)):
            uneven = [value for value in values if value % slices]
            if uneven:
                yield (
                    f"{title} of {', '.join(map(str, uneven))} cannot be shared evenly by {slices} slices; "
                    f"ask for multiples of {slices}."
                )


def _queues(plan: SweepPlan, device: Device, capabilities: Capabilities) -> Iterator[str]:
    """A queue needs a slice, and an engine that spreads them; slices that prepare their own inputs are apart."""
    if plan.queues == (1,):
        return
    if not capabilities.knows_queues:
        yield f"the agent of {device.name} is older than queues; update it, or leave them out."
    if _GPU not in plan.processors:
        yield "queues are a graphics processor's; add --processor gpu, or leave them out."
    others = [engine for engine in plan.engines if engine not in SPREAD_OVER_QUEUES]
    if others:
        able = ", ".join(SPREAD_OVER_QUEUES)
        yield f"the engine {others[0]} spreads no slices over queues; leave out one of them, or choose from: {able}."
    if plan.preparation is Preparation.INSIDE:
        yield "slices that prepare their own inputs are spread over no queues; leave out one of them."
    idle = [queues for queues in plan.queues if queues > max(plan.slices)]
    if idle:
        yield f"{idle[0]} queues have no more than {max(plan.slices)} slices to compute; ask for more slices."
    elif min(plan.queues) > min(plan.slices):
        parts = "1 slice" if min(plan.slices) == 1 else f"{min(plan.slices)} slices"
        yield f"{parts} cannot be spread over {min(plan.queues)} queues; ask for more slices, or for fewer queues too."


def _cores(cores: str, plan: SweepPlan) -> Iterator[str]:
    numbers = core_list(cores)
    if numbers is None:
        yield f"{cores!r} is not a list of cores; write it as 0-3 or 0,2,4."
    elif len(numbers) < max(plan.threads):
        yield (
            f"the cores {cores} are {len(numbers)}, too few for {max(plan.threads)} threads; name more cores or "
            "ask for fewer threads."
        )


def core_list(text: str) -> frozenset[int] | None:
    """Return the cores that a kernel's list names (``0-3,6``, admin-guide/cputopology); None where it is no list."""
    cores: set[int] = set()
    for part in text.strip().split(","):
        match = re.fullmatch(r"([0-9]{1,4})(?:-([0-9]{1,4}))?", part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            return None
        cores.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(cores)


def _threads(plan: SweepPlan, device: Device) -> Iterator[str]:
    too_many = [threads for threads in plan.threads if threads > device.core_count]
    if too_many:
        cores = "1 core" if device.core_count == 1 else f"{device.core_count} cores"
        yield (
            f"{device.name} lets a sweep use {cores}, but the plan asks for {', '.join(map(str, too_many))} threads; "
            f"ask for at most {device.core_count}."
        )


def _modes(plan: SweepPlan, device: Device, capabilities: Capabilities, invented_pass: bool) -> Iterator[str]:
    known = {mode.name: mode for mode in capabilities.modes}
    for name in plan.modes:
        if invented_pass and name not in known and "=" in name:
            continue
        if name not in known:
            yield (
                f"{device.name} has no power mode {name!r} that can be set now"
                f"{meant(name, list(known))}; choose from: {', '.join(known)}."
            )
        else:
            yield from _mode(plan, known[name], capabilities.may_reboot)


def _mode(plan: SweepPlan, mode: PowerMode, may_reboot: bool) -> Iterator[str]:
    if mode.requires_reboot and not may_reboot:
        yield (
            f"the power mode {mode.name!r} takes effect only after a reboot; set it with `{reboot_command(mode)}`, "
            "reboot, and then sweep the mode 'current', or sweep it with an agent that may reboot the device "
            "(powerlab agent run --allow-reboot)."
        )
    if mode.online_cores is None:
        return
    too_many = [threads for threads in plan.threads if threads > mode.online_cores]
    if too_many:
        yield (
            f"the power mode {mode.name!r} has {mode.online_cores} cores online, so {', '.join(map(str, too_many))} "
            f"threads are impossible in it; leave out the mode or ask for at most {mode.online_cores} threads."
        )


def _temperatures(plan: SweepPlan, device: Device, capabilities: Capabilities) -> Iterator[str]:
    """A limit that nobody can watch is refused: to run without it is what its user wanted to keep from happening."""
    limits = plan.temperature_limits.stricter(capabilities.temperature_limits)
    yield from plan.temperature_limits.complaints()
    if not limits or capabilities.thermal_zones:
        return
    if capabilities.thermal_zones is None:
        yield (
            f"{device.name} does not say whether it has temperature sensors, for its agent is older than limits of "
            "temperatures; update it, or leave the limits out."
        )
    else:
        yield (
            f"{device.name} has no temperature sensor that can be read, so nobody can watch that {limits}; leave the "
            "limits out, or see `powerlab doctor`."
        )
