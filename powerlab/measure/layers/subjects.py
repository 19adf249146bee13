"""What a bench repeats: the steps of an inference, or the layers of a step of training."""

from __future__ import annotations

from typing import Any, Protocol

from msgspec.structs import replace

from powerlab.backends.training.batch import LABELS, RATE, batch, target_of
from powerlab.domain.workload import Processor
from powerlab.engine import Session
from powerlab.engine.codegen.work import StepWork, nodes_behind
from powerlab.engine.devices import GPU
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.ir.graph import Graph
from powerlab.engine.passes import optimise
from powerlab.engine.training import TrainingSession
from powerlab.engine.training.layers import TrainingLayers
from powerlab.engine.training.optimizers import optimizer_named
from powerlab.measure.layers.messages import LoadLayers


class Subject(Protocol):
    """A loaded model whose layers run one by one."""

    @property
    def tier(self) -> str:
        """The instruction set in use."""

    @property
    def threads(self) -> int:
        """Threads that compute."""

    @property
    def work(self) -> tuple[StepWork, ...]:
        """What each layer has to do, in the order they run."""

    @property
    def nodes(self) -> tuple[tuple[str, ...], ...]:
        """The nodes of the model that each layer stands for."""

    def steps(self) -> list[tuple[str, str]]:
        """Return kernel and name of each layer."""

    def prepare(self, layer: int) -> None:
        """Make what a layer reads."""

    def repeat(self, layer: int, times: int) -> int:
        """Run a layer so often, and return how long that took, in ns."""

    def profile(self) -> list[int]:
        """Run the whole once, and return what each layer took, in ns."""


class InferenceSteps:
    """The steps of a session's plan, with seeded inputs; fulfils :class:`Subject`."""

    def __init__(self, graph: Graph, request: LoadLayers, threads: int) -> None:
        if request.processor is Processor.GPU:
            self._session = Session(optimise(graph, for_cores=False), device=GPU)
        else:
            self._session = Session(optimise(graph), threads=threads)
        self._inputs = synthetic_inputs(self._session.inputs, request.seed, self._session.dtypes)
        self.tier, self.threads = self._session.tier, self._session.threads
        self.work = self._session.work
        self.nodes = nodes_behind(graph, self.work)

    def steps(self) -> list[tuple[str, str]]:
        """Return kernel and name of each step."""
        kernels = (kernel for kernel, _ in self._session.steps())
        return [(kernel, work.label) for kernel, work in zip(kernels, self.work, strict=True)]

    def prepare(self, layer: int) -> None:
        """Make what a step reads."""
        self._session.repeat(self._inputs, 0, layer + 1, 1)

    def repeat(self, layer: int, times: int) -> int:
        """Run a step so often, and return how long that took, in ns."""
        return self._session.repeat(self._inputs, layer, layer + 1, times)

    def profile(self) -> list[int]:
        """Run the model once, and return what each step took, in ns."""
        return [ns for *_, ns in self._session.profile(self._inputs)]


def load_subject(graph: Graph, request: LoadLayers, threads: int) -> Subject:
    """Return a model as it was loaded, ready to run layer by layer.

    Raises:
        PowerlabError: it cannot be run or trained.
    """
    if not request.optimizer:
        return InferenceSteps(graph, request, threads)
    optimizer = replace(optimizer_named(request.optimizer), rate=RATE)
    where: dict[str, Any] = {"device": GPU} if request.processor is Processor.GPU else {"threads": threads}
    session = TrainingSession(graph, target_of(graph).loss, optimizer, **where)
    given = batch(graph, request.seed)
    return TrainingLayers(graph, session, {name: given[name] for name in session.inputs}, given[LABELS])
