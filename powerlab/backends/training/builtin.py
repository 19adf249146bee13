"""Training in powerlab's own engine."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from powerlab.backends.base import LoadOptions
from powerlab.backends.offers import check_offers
from powerlab.backends.training.batch import LABELS, RATE, batch, target_of
from powerlab.domain.training import ON_GPU_IN, PRECISIONS
from powerlab.domain.workload import Processor
from powerlab.engine.devices import GPU
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.ir.graph import Graph
from powerlab.engine.training import TrainingSession
from powerlab.engine.training.optimizers import optimizer_named

CUTS_BATCHES = True


class BuiltinTrainer:
    """A model in training; fulfils :class:`powerlab.backends.base.Backend`."""

    def __init__(self, graph: Graph, session: TrainingSession, processor_name: str = "") -> None:
        self._graph, self._session = graph, session
        self.processor_name = processor_name

    def inputs(self, seed: int) -> dict[str, NDArray[Any]]:
        """Return a seeded batch."""
        return batch(self._graph, seed)

    @property
    def part_ns(self) -> dict[str, int]:
        """How long the parts of the latest step took, in ns; nothing on a GPU without timestamps."""
        return self._session.part_ns

    def run(self, inputs: dict[str, NDArray[Any]]) -> dict[str, NDArray[np.float32]]:
        """Make one step."""
        given = {name: value for name, value in inputs.items() if name != LABELS}
        return {"loss": np.array([self._session.step(given, inputs[LABELS])], np.float32)}


def load(options: LoadOptions) -> BuiltinTrainer:
    """Load a model and plan its steps.

    Raises:
        PowerlabError: the model cannot be read or trained, the engine does not offer what is asked for, or there is not
            enough memory.
    """
    on_gpu = options.processor is Processor.GPU
    check_offers("builtin", options, (ON_GPU_IN,) if on_gpu else PRECISIONS)
    graph = load_graph(options.model, batch_size=options.batch_size)
    where: dict[str, Any] = (
        {"device": GPU, "queues": options.queues} if on_gpu else {"threads": options.threads, "group": options.group}
    )
    session = TrainingSession(
        options.model,
        target_of(graph).loss,
        replace(optimizer_named(options.optimizer), rate=RATE),
        batch_size=options.batch_size,
        slices=options.slices,
        recompute=options.recompute,
        precision=options.precision,
        **where,
    )
    return BuiltinTrainer(graph, session, _gpu_name() if on_gpu else "")


def _gpu_name() -> str:
    from powerlab.engine.gpu.device import chosen_name

    return chosen_name()
