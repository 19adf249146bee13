"""Carries out ``powerlab learn``: the run, the trainings, the answer."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from rich.text import Text

from powerlab.analysis.dimensions import in_words
from powerlab.analysis.operating_point.quantities import PERCENT, parse_quantity
from powerlab.analysis.wording import counted
from powerlab.cli import EXIT_INCOMPLETE, EXIT_OK
from powerlab.cli.commands.learn.training import HELD_BACK, Lesson, steps_to
from powerlab.cli.output.console import print_neatly, table_console
from powerlab.cli.output.progress import measuring
from powerlab.cli.output.sweep_table import format_figure
from powerlab.cli.stored.open_source import open_source
from powerlab.cli.stored.said import say_run
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Run, Verdict
from powerlab.domain.statistics import mean_half_width
from powerlab.measure.labelled_images import LabelledImages, read_labelled_images
from powerlab.sources.identifiers import run_id

FEWEST_SEEDS = 3
_ENGINE = "builtin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A figure that is made of a run's and of counted steps.

    Attributes:
        value: the figure.
        low: lower end of its 95 % interval.
        high: upper end.
        provenance: that of the run's energy; of steps ``measured``, since they were counted here.
    """

    value: float
    low: float
    high: float
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """What ``--json`` prints.

    Attributes:
        run_id: whose energy of a step counts.
        verdict: of that run.
        what: its point in words.
        images_sha256: of the file of images.
        accuracy_percent: what was to be reached.
        steps_each: of each seed; None where the accuracy was not reached.
        steps: their mean; None where one is missing.
        step_energy_j: of a step, as the run has it.
        energy_j: of so many steps; None where one is missing.
    """

    run_id: str
    verdict: Verdict
    what: str
    images_sha256: str
    accuracy_percent: float
    steps_each: tuple[int | None, ...]
    steps: Answer | None
    step_energy_j: Answer
    energy_j: Answer | None


def learn(args: argparse.Namespace) -> int:
    """Train, count and print; returns the exit status."""
    percent = _checked(args)
    images = read_labelled_images(Path(args.labelled_images))
    with open_source(args) as source:
        run = source.run(run_id(source, args.run_id))
        say_run(source, run)
    energy = _step_energy(run)
    workload = run.point.workload
    lesson = Lesson(workload=workload, percent=percent, rate=args.rate, every=args.every, most_steps=args.most_steps)
    each = _trained(lesson, images, args.seeds)
    steps = _mean([step for step in each if step is not None]) if None not in each else None
    found = Learnt(
        run_id=run.id,
        verdict=run.verdict,
        what=in_words(run.point),
        images_sha256=images.sha256,
        accuracy_percent=percent,
        steps_each=each,
        steps=steps,
        step_energy_j=energy,
        energy_j=None if steps is None else _product(steps, energy),
    )
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        print_neatly(table_console(), *_words(found, images, lesson))
    return EXIT_INCOMPLETE if steps is None else EXIT_OK


def _checked(args: argparse.Namespace) -> float:
    """Return the accuracy in percent."""
    for option, value, least in (
        ("--seeds", args.seeds, FEWEST_SEEDS),
        ("--every", args.every, 1),
        ("--most-steps", args.most_steps, 1),
    ):
        if value < least:
            raise PowerlabError(f"invalid {option} {value}: give at least {least}.")
    if args.rate is not None and not (math.isfinite(args.rate) and args.rate > 0):
        raise PowerlabError(f"invalid --rate {args.rate:g}: give a number above 0.")
    percent = parse_quantity("accuracy", args.accuracy, PERCENT, "95%")
    if percent > 100:
        raise PowerlabError(f"invalid accuracy {args.accuracy!r}: give at most 100%.")
    return percent


def _step_energy(run: Run) -> Answer:
    """Return J of a step of a run, with the interval of its energy per image."""
    workload, metric = run.point.workload, run.metric("energy_per_image_j")
    if not workload.trains:
        raise PowerlabError(f"run {run.id} infers; learning takes a run that trains (--workload train).")
    if workload.engine != _ENGINE:
        raise PowerlabError(
            f"run {run.id} was trained by {workload.engine}, and steps are counted in {_ENGINE}, which may need more "
            f"or fewer; choose a run of {_ENGINE}."
        )
    if metric is None or metric.low is None or metric.high is None:
        raise PowerlabError(f"run {run.id} has no energy with an interval; `powerlab runs show {run.id}` says why.")
    images = workload.batch_size
    return Answer(
        value=images * metric.value, low=images * metric.low, high=images * metric.high, provenance=metric.provenance
    )


def _trained(lesson: Lesson, images: LabelledImages, seeds: int) -> tuple[int | None, ...]:
    with measuring() as progress:
        task = progress.add_task("training", total=seeds)
        found = []
        for seed in range(seeds):
            found.append(steps_to(lesson, images, seed))
            progress.advance(task)
    return tuple(found)


def _mean(steps: Sequence[int]) -> Answer:
    value, half = sum(steps) / len(steps), mean_half_width(steps) or 0.0
    return Answer(value=value, low=max(0.0, value - half), high=value + half, provenance=Provenance.MEASURED)


def _product(steps: Answer, energy: Answer) -> Answer:
    """Return the product of two figures that know nothing of each other (JCGM 100:2008, 5.1.6)."""
    value = steps.value * energy.value
    below = math.hypot((steps.value - steps.low) / steps.value, (energy.value - energy.low) / energy.value)
    above = math.hypot((steps.high - steps.value) / steps.value, (energy.high - energy.value) / energy.value)
    return Answer(
        value=value, low=max(0.0, value * (1 - below)), high=value * (1 + above), provenance=energy.provenance
    )


def _words(found: Learnt, images: LabelledImages, lesson: Lesson) -> list[Text]:
    held_back = round(HELD_BACK * images.labels.size)
    lines = [
        Text(f"{found.what}: {found.accuracy_percent:g} % of {held_back} images that nothing was learnt from"),
        Text(
            "steps by seed: "
            + ", ".join("not reached" if one is None else str(one) for one in found.steps_each)
            + f" (tested every {lesson.every})"
        ),
    ]
    if found.steps is None or found.energy_j is None:
        missed = found.steps_each.count(None)
        return [
            *lines,
            Text(
                f"{counted(missed, 'seed')} of {len(found.steps_each)} did not reach it within {lesson.most_steps} "
                "steps, so there is no figure; allow more steps, another --rate, or ask for less.",
                style="bold",
            ),
        ]
    energy = found.step_energy_j
    step = f"{format_figure(energy)} J each ({energy.provenance}, {found.verdict} run {found.run_id})"
    return [
        *lines,
        Text(f"{format_figure(found.steps)} steps of {step}"),
        Text(f"{format_figure(found.energy_j)} J to the accuracy ({found.energy_j.provenance})", style="bold"),
    ]
