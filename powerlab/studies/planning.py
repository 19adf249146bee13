"""Plan the sweeps of a study that this device can run, with a reason for each part that it cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE_NAME, ModeOrigin, PowerMode, reboot_command
from powerlab.domain.preflight import ENGINES
from powerlab.domain.rigour import LEVELS, Rigour
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.training import TRAINERS
from powerlab.domain.workload import Processor, WorkloadKind
from powerlab.studies.study import NotRepeated, PlanTemplate, Study, Threads

ALL = "all"
_GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """What a study must know of the device and of what is installed.

    Attributes:
        name: the device's name.
        core_count: cores a sweep may use.
        memory_bytes: installed memory; 0 where nobody knows.
        modes: the power modes that can be set.
        engines: the engines that are installed.
        models: what runs each network: its own name where the zoo has it, or a file.
        needed_bytes: the least memory a model takes at a batch size.
        training_bytes: the same where it is trained.
        refusal: why an engine does not run a model at a precision on a processor; empty where it does.
        first_cores: the list of cores that so many threads are given unasked.
        queues: of the graphics processor; 1 where there is none, or a simulated one.
        simulated: whether it is a simulated board.
    """

    name: str
    core_count: int
    memory_bytes: int
    modes: tuple[PowerMode, ...]
    engines: tuple[str, ...]
    models: Mapping[str, str]
    needed_bytes: Callable[[str, int], int]
    training_bytes: Callable[[str, int], int]
    refusal: Callable[[str, str, str, Processor], str]
    first_cores: Callable[[int], str]
    queues: int = 1
    simulated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The sweeps of a study, and what of it this device cannot repeat."""

    plans: tuple[SweepPlan, ...]
    left_out: tuple[NotRepeated, ...]


@dataclass(frozen=True, slots=True)
class _Job:
    """What one model, at one batch size and precision, is run with."""

    model: str
    batch_size: int
    precision: str
    engines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Crossing:
    """Models, batch sizes, precisions and engines of which every combination is run."""

    models: tuple[str, ...]
    batch_sizes: tuple[int, ...]
    precisions: tuple[str, ...]
    engines: tuple[str, ...]


def plan_study(
    study: Study,
    here: Here,
    *,
    rigour: Rigour,
    quick: bool = False,
    modes: tuple[str, ...] = (),
    engines: tuple[str, ...] = (),
) -> Planned:
    """Return the sweeps.

    Args:
        study: what to repeat.
        here: where.
        rigour: the level that sets times and counts.
        quick: take the study's smaller batch sizes.
        modes: power modes instead of the study's own; they are taken as they are.
        engines: of the study's engines, these alone; empty for all.

    Raises:
        PowerlabError: nothing of the study can be repeated here, with the reasons.
    """
    plans: list[SweepPlan] = []
    left_out = [NotRepeated(what="other engines", why=f"{', '.join(engines)} alone was asked for")] if engines else []
    for template in study.plans:
        smaller = template.quick_batch_sizes if quick else ()
        chosen = replace(template, batch_sizes=smaller or template.batch_sizes)
        jobs = list(_jobs(chosen, here, engines or here.engines, left_out))
        if jobs:
            left_out += _missing_queues(chosen, here)
            left_out += _without_effect(chosen, here)
            groups = _mode_groups(modes or _modes(chosen, here, left_out), here)
            plans += [
                _sweep(chosen, crossing, group, here, rigour) for crossing, group in product(_merged(jobs), groups)
            ]
    if not plans:
        reasons = "; ".join(f"{one.what}: {one.why}" for one in left_out)
        raise PowerlabError(f"nothing of the study {study.name} can be repeated on {here.name} ({reasons}).")
    return Planned(plans=tuple(plans), left_out=tuple(dict.fromkeys(left_out)))


def _jobs(template: PlanTemplate, here: Here, asked: tuple[str, ...], left_out: list[NotRepeated]) -> Iterator[_Job]:
    processor = template.processor
    able_here = [one for one in here.engines if processor in ENGINES[one] and (one in TRAINERS or not template.trains)]
    named = able_here if ALL in template.engines else template.engines
    wanted = [engine for engine in named if engine in asked]
    place = "" if processor is Processor.CPU else f" on the {processor}"
    trained = " in training" if template.trains else ""
    for network in template.models:
        model = here.models.get(network)
        if model is None:
            why = f"the zoo does not have it; an ONNX file can stand in, with --model {network}=FILE.onnx"
            left_out.append(NotRepeated(what=network, why=why))
            continue
        for precision in template.precisions:
            able = []
            for engine in wanted:
                why = here.refusal(engine, model, precision, processor).rstrip(".")
                if why:
                    left_out.append(NotRepeated(what=f"{network} in {precision} on {engine}{place}", why=why))
                else:
                    able.append(engine)
            for batch_size in template.batch_sizes:
                too_big = _too_big(model, batch_size, here, trains=template.trains)
                if too_big:
                    left_out.append(NotRepeated(what=f"{network}{trained} at batch {batch_size}", why=too_big))
                elif able:
                    yield _Job(model, batch_size, precision, tuple(able))


def _missing_queues(template: PlanTemplate, here: Here) -> Iterator[NotRepeated]:
    for queues in template.queues:
        if queues > here.queues:
            has = "one queue" if here.queues == 1 else f"{here.queues} queues"
            yield NotRepeated(
                what=f"slices over {queues} queues", why=f"the graphics processor of {here.name} has {has}"
            )


def _without_effect(template: PlanTemplate, here: Here) -> Iterator[NotRepeated]:
    if here.simulated and max(template.slices) > 1:
        yield NotRepeated(
            what="what slices do to speed and energy",
            why=f"{here.name} is simulated and does the same work in the same time however a batch is cut",
        )


def _too_big(model: str, batch_size: int, here: Here, *, trains: bool) -> str:
    needed = (here.training_bytes if trains else here.needed_bytes)(model, batch_size)
    if not 0 < here.memory_bytes < needed:
        return ""
    return (
        f"it takes at least {needed / _GIB:.1f} GiB for weights and activations, "
        f"and {here.name} has {here.memory_bytes / _GIB:.1f} GiB"
    )


def _merged(jobs: list[_Job]) -> list[_Crossing]:
    """Return what can be crossed without adding a job.

    An engine that runs a network at fewer batch sizes or precisions than others gets a sweep of its own, so that all
    precisions of an engine are compared in one.
    """
    sizes: dict[tuple[str, str, str], list[int]] = {}
    for job in jobs:
        for engine in job.engines:
            sizes.setdefault((job.model, engine, job.precision), []).append(job.batch_size)
    precisions: dict[tuple[str, str, tuple[int, ...]], list[str]] = {}
    for (model, engine, precision), found in sizes.items():
        precisions.setdefault((model, engine, tuple(found)), []).append(precision)
    engines: dict[tuple[str, tuple[int, ...], tuple[str, ...]], list[str]] = {}
    for (model, engine, batch_sizes), names in precisions.items():
        engines.setdefault((model, batch_sizes, tuple(names)), []).append(engine)
    models: dict[tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (model, batch_sizes, names_of), able in engines.items():
        models.setdefault((batch_sizes, names_of, tuple(able)), []).append(model)
    return [
        _Crossing(tuple(names), batch_sizes, names_of, able_engines)
        for (batch_sizes, names_of, able_engines), names in models.items()
    ]


def _modes(template: PlanTemplate, here: Here, left_out: list[NotRepeated]) -> tuple[str, ...]:
    """Return the vendor's modes for ``all``, since a study asks what a board's maker offers; else those named."""
    if ALL not in template.modes:
        return template.modes
    vendor = [mode for mode in here.modes if mode.origin is ModeOrigin.VENDOR and not _pins_clocks(mode)]
    for mode in vendor:
        if mode.requires_reboot:
            why = f"it takes a reboot; set it with `{reboot_command(mode)}`, reboot, and repeat the study in it"
            left_out.append(NotRepeated(what=f"power mode {mode.name}", why=why))
    names = tuple(mode.name for mode in vendor if not mode.requires_reboot)
    if not names:
        why = f"{here.name} has no vendor modes, so it is measured with its current settings"
        left_out.append(NotRepeated(what="power modes", why=why))
    return names or (CURRENT_MODE_NAME,)


def _pins_clocks(mode: PowerMode) -> bool:
    """Whether a mode only holds clocks where another mode lets them go, which is no budget of power."""
    return any(setting.knob == "jetson_clocks" for setting in mode.settings)


def _mode_groups(names: tuple[str, ...], here: Here) -> list[tuple[int, tuple[str, ...]]]:
    """Return modes by how many cores they leave, for threads depend on it."""
    online = {mode.name: mode.online_cores for mode in here.modes}
    groups: dict[int, list[str]] = {}
    for name in names:
        cores = min(here.core_count, online.get(name) or here.core_count)
        groups.setdefault(cores, []).append(name)
    return [(cores, tuple(found)) for cores, found in groups.items()]


def thread_counts(wanted: Threads | tuple[int, ...], cores: int) -> tuple[int, ...]:
    """Return thread counts for so many cores: all of them, doubling up to all, or those of a list that fit."""
    if wanted is Threads.ALL:
        return (cores,)
    if wanted is Threads.DOUBLING:
        return tuple(dict.fromkeys([*(2**power for power in range(cores.bit_length()) if 2**power < cores), cores]))
    return tuple(count for count in wanted if count <= cores) or (cores,)


def _sweep(
    template: PlanTemplate,
    crossing: _Crossing,
    group: tuple[int, tuple[str, ...]],
    here: Here,
    rigour: Rigour,
) -> SweepPlan:
    cores, modes = group
    threads = thread_counts(template.threads, cores)
    level = LEVELS[rigour]
    # A step of training takes any number of slices; those of an inference on the cores share the threads evenly.
    any_number = template.trains or template.processor is Processor.GPU
    slices = tuple(one for one in template.slices if any_number or not any(count % one for count in threads))
    return SweepPlan(
        workload=WorkloadKind.TRAIN if template.trains else WorkloadKind.INFERENCE,
        optimizers=template.optimizers,
        slices=slices or (1,),
        queues=tuple(one for one in template.queues if one <= here.queues) or (1,),
        models=crossing.models,
        threads=threads,
        batch_sizes=crossing.batch_sizes,
        modes=modes,
        engines=crossing.engines,
        processors=(template.processor,),
        precisions=crossing.precisions,
        cores=("", here.first_cores(max(threads))) if template.same_cores else ("",),
        rigour=rigour,
        repeats=template.repeats or level.repeats,
        duration_s=level.duration_s,
        min_inferences=level.min_inferences,
        warm_up_s=level.warm_up_s,
        longest_warm_up_s=level.longest_warm_up_s,
        idle_s=level.idle_s,
        cool_down_s=level.cool_down_s,
    )
