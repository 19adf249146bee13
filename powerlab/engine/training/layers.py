"""A step of training layer by layer: forward and backward pass of each, and the update of its weights, repeatable."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from msgspec import Struct
from numpy.typing import NDArray

from powerlab.engine.codegen.work import StepWork
from powerlab.engine.ir.graph import Graph
from powerlab.engine.training.parts import PARTS, backward_from
from powerlab.engine.training.plans import Repeatable
from powerlab.engine.training.session import TrainingSession

_UPDATE_LABEL = ".update"

BACKWARD, UPDATE, LOSS = " backward", " update", "loss"
"""What stands behind a layer's name where its gradients are computed, or its weights moved; and the loss's own name."""


def part_of(name: str) -> str:
    """Return the part of a step, of :data:`powerlab.engine.training.parts.PARTS`, that a layer of this name is in."""
    forward, backward, update = PARTS
    if name.endswith(UPDATE):
        return update
    return backward if name == LOSS or name.endswith(BACKWARD) else forward


class _Span(Struct, frozen=True):
    """Steps of a plan that follow on each other and belong to the same layer and direction."""

    plan: Repeatable
    arrays: Mapping[str, Any]
    first: int
    last: int
    work: StepWork
    kernel: str
    nodes: tuple[str, ...]


class TrainingLayers:
    """A session whose layers can be timed and repeated one by one.

    A layer stands here as often as it runs: forwards, backwards (gradients of its inputs and weights), and where its
    weights are moved. Weights stay finite if the learning rate is small, for repeated steps move them, too.

    Args:
        network: the model as it was loaded.
        session: of it.
        inputs: of every step.
        labels: of every step.
    """

    def __init__(
        self, network: Graph, session: TrainingSession, inputs: Mapping[str, NDArray[Any]], labels: NDArray[Any]
    ) -> None:
        self._session, self._given = session, (inputs, labels)
        self._names = _Names(network)
        self._spans = [span for plan, arrays in session.runs(inputs, labels) for span in self._spans_of(plan, arrays)]

    @property
    def tier(self) -> str:
        """Return the instruction set in use."""
        return self._session.tier

    @property
    def threads(self) -> int:
        """Return how many threads compute."""
        return self._session.threads

    @property
    def work(self) -> tuple[StepWork, ...]:
        """Return what each layer has to do, in the order of :meth:`steps`."""
        return tuple(span.work for span in self._spans)

    @property
    def nodes(self) -> tuple[tuple[str, ...], ...]:
        """Return the nodes of the model that each layer stands for."""
        return tuple(span.nodes for span in self._spans)

    def steps(self) -> list[tuple[str, str]]:
        """Return the kernel that does most of each layer, and its name, in the order they run."""
        return [(span.kernel, span.work.label) for span in self._spans]

    def profile(self) -> list[int]:
        """Make one step of training and return what each layer took, in ns."""
        took_ns = {id(plan): plan.run(arrays) for plan, arrays in self._session.runs(*self._given)}
        return [sum(took_ns[id(span.plan)][span.first : span.last]) for span in self._spans]

    def prepare(self, layer: int) -> None:
        """Make what a layer reads."""
        span = self._spans[layer]
        span.plan.repeat(span.arrays, 0, span.last, 1)

    def repeat(self, layer: int, times: int) -> int:
        """Run a layer ``times`` times over and return how long that took, in ns."""
        span = self._spans[layer]
        return span.plan.repeat(span.arrays, span.first, span.last, times)

    def _spans_of(self, plan: Repeatable, arrays: Mapping[str, Any]) -> list[_Span]:
        kernels, made, first, backward = plan.kernels(), [], 0, backward_from(plan.labels)
        layers = (self._names.of(label, behind_forward=at >= backward) for at, label in enumerate(plan.labels))
        for (node, direction), steps in groupby(layers):
            last = first + len(list(steps))
            works = plan.work[first:last]
            most = max(range(first, last), key=lambda at: (plan.work[at].flops, plan.work[at].bytes_moved))
            work = StepWork(
                label=node + direction,
                operator=self._names.operators.get(node, ""),
                output="",
                shape=self._names.shapes.get(node, works[most - first].shape),
                flops=sum(work.flops for work in works),
                bytes_moved=sum(work.bytes_moved for work in works),
            )
            nodes = (node,) if node in self._names.operators else ()
            made.append(_Span(plan, arrays, first, last, work, kernels[most], nodes))
            first = last
        return made


class _Names:
    """Tells which layer a step belongs to, by its label, which begins with the name of a node, or of its weight."""

    def __init__(self, network: Graph) -> None:
        self.operators = {node.name or node.outputs[0]: node.op_type for node in network.nodes}
        self.shapes = {node.name or node.outputs[0]: network.shape(node.outputs[0]) for node in network.nodes}
        self._readers = {name: node.name or node.outputs[0] for node in network.nodes for name in node.inputs if name}
        self._known = sorted(self.operators, key=len, reverse=True)

    def of(self, label: str, *, behind_forward: bool) -> tuple[str, str]:
        """Return the name of a layer, or what else the step is for, and the direction.

        Not every label tells the direction: a step that turns a layout for a gradient, and the steps of time of a
        recurrence, are named after the layer alone. So a step's place in the plan decides.
        """
        if _UPDATE_LABEL in label:
            weight = label.partition(_UPDATE_LABEL)[0]
            return self._readers.get(weight, weight), UPDATE
        if label.startswith("loss."):
            return LOSS, ""
        direction = BACKWARD if behind_forward else ""
        for name in self._known:
            if label.startswith(name) and (len(label) == len(name) or label[len(name)] in ". "):
                return name, direction
        return label, direction
