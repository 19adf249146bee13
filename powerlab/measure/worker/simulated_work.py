"""Amount of computation of a network, for simulated boards, whose model turns it into time.

Convolutions, matrix products and recurrent layers count, each with its operands, weights and result once in float32;
all else is taken to be fused into them. That is the same for every engine and precision.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from powerlab.boards.simulator import Work
from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Preparation, Workload
from powerlab.engine.codegen.work import StepWork
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.ir.graph import Graph
from powerlab.engine.ir.statistics import macs
from powerlab.engine.program.storage import FLOAT_BYTES
from powerlab.engine.training.parameters import parameters_of
from powerlab.engine.training.parts import PARTS

UNREADABLE_IMAGE = Work(1e9, 5e7)
"""Stands in for an image of a network that the built-in engine cannot read, and other engines may: 1 GFLOP, 50 MB."""
_BACKWARD_PASSES = 2.0
"""A backward pass in forward passes: each layer's gradients, of its input and of its weights, are as much work as it is
(OpenAI, AI and Compute, 2018)."""
_FLOATS_OF_AN_UPDATE = {"sgd": 3, "momentum": 5, "nesterov": 5, "adam": 7, "adamw": 7}
"""What an optimizer reads and writes for each weight: its gradient, and the weight and its own memory twice."""
_FLOPS_OF_A_FLOAT = 2
"""A multiplication and an addition for each of these, about."""
_PREPARED_FLOPS, _PREPARED_BYTES = 20.0, 100.0
"""What each number of an input takes that is made from a picture inside the timed part. Chosen."""


def graph_work(graph: Graph) -> Work:
    """Return the work of one inference of a graph as it was loaded."""
    flops = bytes_moved = 0
    for node in graph.nodes:
        if multiplied := macs(graph, node):
            names = {name for name in (*node.inputs, *node.outputs) if name}
            flops += 2 * multiplied
            bytes_moved += FLOAT_BYTES * sum(graph.tensors[name].elements for name in names)
    return Work(flops, bytes_moved)


def inference_work(workload: Workload) -> Work:
    """Return the work of one inference of a whole batch, or of one step of training, however it is sliced."""
    return _together(query_works(workload).values())


def query_works(workload: Workload) -> Mapping[str, Work]:
    """Return the work of the parts of one step of training by name, in order; an inference has one without a name."""
    try:
        graph = load_graph(workload.model, batch_size=workload.batch_size)
    except PowerlabError:
        return {"": Work(UNREADABLE_IMAGE.flops * workload.batch_size, UNREADABLE_IMAGE.bytes_moved)}
    if workload.trains:
        return step_parts(graph, workload.optimizer, recomputes=workload.recomputes)
    work = graph_work(graph)
    if workload.preparation is Preparation.INSIDE:
        numbers = sum(info.elements for info in graph.inputs)
        work += Work(_PREPARED_FLOPS * numbers, _PREPARED_BYTES * numbers, calls=0.0)
    return {"": work}


def step_parts(graph: Graph, optimizer: str, *, recomputes: bool = False) -> dict[str, Work]:
    """Return the work of the parts of a step of training, in order; both passes are one call of the engine.

    Where it recomputes activations, the backward pass holds a forward pass, though its last part was kept.
    """
    forward, passes = graph_work(graph), _BACKWARD_PASSES + recomputes
    backward = Work(passes * forward.flops, passes * forward.bytes_moved, calls=0.0)
    floats = _FLOATS_OF_AN_UPDATE[optimizer] * _weights(graph)
    return dict(zip(PARTS, (forward, backward, Work(_FLOPS_OF_A_FLOAT * floats, FLOAT_BYTES * floats)), strict=True))


def _weights(graph: Graph) -> int:
    return sum(graph.tensors[name].elements for name in parameters_of(graph))


def weight_count(workload: Workload) -> int:
    """Return how many weights a model has that training moves."""
    return _weights(load_graph(workload.model, batch_size=workload.batch_size))


def training_work(graph: Graph, optimizer: str) -> Work:
    """Return the work of a step of training."""
    return _together(step_parts(graph, optimizer).values())


def _together(works: Iterable[Work]) -> Work:
    return sum(works, start=Work(0.0, 0.0, calls=0.0))


def step_works(whole: Work, steps: Sequence[StepWork]) -> tuple[Work, ...]:
    """Share the work of an inference out among the steps of its plan, by what each of them does by itself."""
    flops, bytes_moved = (sum(getattr(step, kind) for step in steps) for kind in ("flops", "bytes_moved"))
    return tuple(
        Work(
            whole.flops * step.flops / max(1, flops),
            whole.bytes_moved * step.bytes_moved / max(1, bytes_moved),
            whole.calls / len(steps),
        )
        for step in steps
    )
