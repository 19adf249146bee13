"""The interface every engine under test fulfils."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.workload import Processor

if TYPE_CHECKING:
    from powerlab.engine.training.together import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """What an engine is asked to load; it refuses what it cannot do, and replaces nothing by something near it.

    Attributes:
        model: a name of the zoo, or the path of an ONNX file.
        batch_size: images per inference: the first dimension of every input.
        threads: threads that compute.
        precision: ``fp32``, or what else the engine offers.
        spin_us: how long a thread that has nothing to do spins before it sleeps; None leaves it to the engine.
        slices: parts the engine cuts the batch into, which run at the same time on a share of the threads each; more
            than one is asked only of an engine that cuts batches itself.
        queues: of the graphics processor, over which such an engine spreads the slices.
        processor: what computes the model; threads on a graphics processor are those that hand it its work.
        optimizer: how steps of training move the weights; empty where the model answers.
        recompute: whether they compute activations again; asked only of an engine that can.
        group: processes that train together, asked only of the built-in engine; None: this one alone.
    """

    model: str
    batch_size: int
    threads: int
    precision: str = "fp32"
    spin_us: int | None = None
    slices: int = 1
    queues: int = 1
    processor: Processor = Processor.CPU
    optimizer: str = ""
    recompute: bool = False
    group: Group | None = None


class Backend(Protocol):
    """A model loaded into an engine, ready to run inside the worker process.

    A backend module offers ``load(options: LoadOptions) -> Backend``, and its name stands in
    :data:`powerlab.domain.preflight.ENGINES`. Where it says ``CUTS_BATCHES = True`` the engine cuts batches into slices
    itself; any other is loaded once for each slice. ``load`` raises ``PowerlabError`` with one sentence for what it
    refuses: a model, a precision, a spin time. A process may hold several backends (one a slice of a batch) and run
    them at the same time, each from a thread of its own: so :meth:`run` releases the interpreter lock meanwhile.

    A backend may have an attribute ``part_ns``: what the parts of its latest run took in ns, by name, in the order in
    which they follow each other, such as those of a step of training.

    On a graphics processor a backend has an attribute ``processor_name`` with the driver's name of it, which is stored
    with each run, and :meth:`run` returns when the processor is done and the outputs are in the host's memory.
    """

    def inputs(self, seed: int) -> dict[str, NDArray[np.float32]]:
        """Return seeded random inputs of the shapes the model takes at this batch size, pictures as NCHW."""
        ...

    def run(self, inputs: dict[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
        """Run one inference and return when its outputs are there."""
        ...
