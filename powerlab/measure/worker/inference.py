"""One inference, or one step of training: a batch, or the slices of a batch concurrently.

An engine that cuts batches itself gets the whole batch. Any other is loaded once for each slice, and so is every engine
where inputs are prepared inside the timed part: slices prepare their own at the same time, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from powerlab.backends.base import Backend, LoadOptions
from powerlab.backends.registry import cuts_batches, load
from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Preparation, Workload
from powerlab.measure.preprocessing import Pictures, picture_input

if TYPE_CHECKING:
    from powerlab.engine.training.together import Group

Tensors = dict[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of the batch: the engine that computes it, and what its inputs come from."""

    backend: Backend
    inputs: Callable[[], Tensors]

    def run(self) -> Tensors:
        """Run it once."""
        return self.backend.run(self.inputs())


class Slices:
    """The slices of a batch. The calling thread runs the first one, and a thread of its own each other one."""

    def __init__(self, slices: Sequence[Slice]) -> None:
        self._first, *self._others = slices
        self._threads = ThreadPoolExecutor(len(self._others)) if self._others else None

    def run(self) -> list[Tensors]:
        """Run all of them once and return their outputs: slice after slice what the whole batch's outputs would be."""
        if self._threads is None:
            return [self._first.run()]
        others = [self._threads.submit(other.run) for other in self._others]
        return [self._first.run(), *(other.result() for other in others)]

    def run_seeded(self, seed: int) -> list[Tensors]:
        """Run every slice once, one after the other, on inputs made from a seed."""
        slices = [self._first, *self._others]
        return [one.backend.run(one.backend.inputs(seed + number)) for number, one in enumerate(slices)]

    def run_given(self, given: Tensors) -> list[Tensors]:
        """Run the whole batch once on these inputs.

        Raises:
            PowerlabError: they are not what the model takes.
        """
        return [self._first.backend.run(_fitted(given, self._first.backend.inputs(seed=0)))]

    @property
    def part_ns(self) -> Mapping[str, int]:
        """How long each part of the latest run took, in ns, in their order; none where the engine does not say."""
        return getattr(self._first.backend, "part_ns", {})

    @property
    def processor_name(self) -> str:
        """What the engine calls the graphics processor that computes; empty where none does, or nobody says."""
        return str(getattr(self._first.backend, "processor_name", ""))

    def close(self) -> None:
        """End the threads when what they run has ended."""
        if self._threads is not None:
            self._threads.shutdown()


def load_slices(  # noqa: PLR0917 - what a worker is asked to load
    backend_module: str, workload: Workload, threads: int, spin_us: int | None, seed: int, group: Group | None = None
) -> Slices:
    """Load a workload's model for all slices, each with its share of the threads, but one thread at least.

    A step of training shares all threads among its slices itself.

    Raises:
        PowerlabError: the model cannot be run as asked, with the reason.
    """
    engines = workload.slices
    if engines > 1 and workload.preparation is Preparation.OUTSIDE and cuts_batches(backend_module):
        engines = 1
    slices_each = workload.slices // engines
    options = LoadOptions(
        model=workload.model,
        batch_size=workload.batch_size // engines,
        threads=threads if workload.trains else slices_each * max(1, threads // workload.slices),
        precision=workload.precision,
        spin_us=spin_us,
        slices=slices_each,
        queues=workload.queues,
        processor=workload.processor,
        optimizer=workload.optimizer,
        recompute=workload.recomputes,
        group=group,
    )
    return Slices(
        [
            Slice(backend, _inputs(workload, backend, seed + number))
            for number, backend in enumerate(load(backend_module, options) for _ in range(engines))
        ]
    )


def _fitted(given: Tensors, wanted: Tensors) -> Tensors:
    """Return arrays under the names and in the types of a model's inputs."""
    if len(given) == len(wanted) == 1:
        given = dict(zip(wanted, given.values(), strict=True))
    for name, example in wanted.items():
        if name not in given:
            raise PowerlabError(f"the labelled images lack the model's input {name!r}; give an array for each input.")
        if given[name].shape != example.shape:
            raise PowerlabError(
                f"the labelled images have {name!r} in batches of the shape {given[name].shape}, but the model takes "
                f"{example.shape}; give images of that shape."
            )
    return {name: given[name].astype(example.dtype) for name, example in wanted.items()}


def _inputs(workload: Workload, backend: Backend, seed: int) -> Callable[[], Tensors]:
    """Return what gives a slice its inputs: made once, or prepared from pictures every time."""
    made = backend.inputs(seed)
    if workload.preparation is Preparation.OUTSIDE:
        return lambda: made
    name = picture_input(workload.model, made)
    count, channels, height, width = made[name].shape
    pictures = Pictures((count, channels, height, width), seed)
    return lambda: {name: pictures.prepared()}
