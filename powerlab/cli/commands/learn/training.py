"""Train a model on labelled images until it is right often enough on others, and count the steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Workload
from powerlab.engine.training import TrainingSession
from powerlab.engine.training.optimizers import optimizer_named
from powerlab.measure.labelled_images import LabelledImages, filled_batches

HELD_BACK = 0.25
"""The share of the images that nothing is learnt from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """How a model is to be trained.

    Attributes:
        workload: model, batch size, optimizer and slices.
        percent: of the images that are held back, which must be told right.
        rate: the learning rate; None for the optimizer's usual one.
        every: steps between two tests.
        most_steps: when to give up.
    """

    workload: Workload
    percent: float
    rate: float | None
    every: int
    most_steps: int


def steps_to(lesson: Lesson, images: LabelledImages, seed: int) -> int | None:
    """Return the step after which a test found the accuracy; None where none did.

    Args:
        lesson: what is asked.
        images: what is learnt; which are held back, and the order of the rest, comes from the seed.
        seed: of these, and of Dropout.

    Raises:
        PowerlabError: there are too few images, or they do not fit the model, or it cannot be trained.
    """
    workload, random = lesson.workload, np.random.default_rng((abs(seed), 0))
    optimizer = optimizer_named(workload.optimizer)
    session = TrainingSession(
        workload.model,
        "softmax_cross_entropy",
        optimizer if lesson.rate is None else replace(optimizer, rate=lesson.rate),
        batch_size=workload.batch_size,
        precision=workload.precision,
        slices=workload.slices,
        recompute=workload.recomputes,
        seed=seed,
    )
    order = random.permutation(images.labels.size)
    held_back, learnt = np.split(order, [round(HELD_BACK * order.size)])
    if learnt.size < workload.batch_size or not held_back.size:
        raise PowerlabError(
            f"{images.labels.size} labelled images are too few: {1 - HELD_BACK:.0%} of them must fill a batch of "
            f"{workload.batch_size}."
        )
    inputs = _named(images, session)
    for step, picked in enumerate(_batches(learnt, workload.batch_size, random), start=1):
        session.step({name: value[picked] for name, value in inputs.items()}, images.labels[picked])
        if step % lesson.every == 0 and _percent_right(session, inputs, images.labels, held_back) >= lesson.percent:
            return step
        if step >= lesson.most_steps:
            return None
    raise AssertionError("batches do not end")


def _named(images: LabelledImages, session: TrainingSession) -> dict[str, NDArray[np.float32]]:
    """Return the images by the names of the model's inputs; one array may have any name."""
    wanted = session.inputs
    given = dict(images.inputs)
    if len(given) == len(wanted) == 1:
        given = dict(zip(wanted, given.values(), strict=True))
    missing = [name for name in wanted if name not in given]
    if missing:
        raise PowerlabError(f"the labelled images lack the model's input {missing[0]!r}; give an array for each input.")
    return {name: given[name] for name in wanted}


def _batches(learnt: NDArray[np.int64], size: int, random: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Yield places of images without end: all of them once in each round, but what fills no batch."""
    while True:
        order = random.permutation(learnt)
        yield from (order[begin : begin + size] for begin in range(0, order.size - size + 1, size))


def _percent_right(
    session: TrainingSession,
    inputs: dict[str, NDArray[np.float32]],
    labels: NDArray[np.int64],
    places: NDArray[np.int64],
) -> float:
    """Return how many images are told right by the model as it is now, in percent."""
    right, size = 0, next(iter(session.inputs.values()))[0]
    for batch, kept in filled_batches(places.size, size):
        taken = places[batch]
        (scores,) = session.answers({name: value[taken] for name, value in inputs.items()}).values()
        right += int(np.count_nonzero(scores[:kept].argmax(axis=1) == labels[taken[:kept]]))
    return 100 * right / places.size
