"""The gradients of a model in the buckets in which they are sent, in the order in which a backward pass makes them."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.analysis.scaling.simulate import Bucket
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.ir.graph import Graph
from powerlab.engine.ir.statistics import macs
from powerlab.engine.program.storage import FLOAT_BYTES
from powerlab.engine.training.parameters import parameters_of
from powerlab.engine.training.stretches import BUCKET_FLOATS, in_buckets

BUCKET_BYTES = FLOAT_BYTES * BUCKET_FLOATS


def gradient_buckets(model: str, batch_size: int) -> tuple[Bucket, ...]:
    """Return the buckets of a model, as processes that train together send them.

    The backward pass takes its time layer by layer, in proportion to their multiply-adds.

    Raises:
        PowerlabError: the model cannot be read.
    """
    gradients = _gradients(load_graph(model, batch_size=batch_size))
    return tuple(
        Bucket(size=FLOAT_BYTES * sum(floats for floats, _ in bucket), ready_share=bucket[-1][1])
        for bucket in in_buckets(gradients, lambda gradient: gradient[0])
    )


def _gradients(graph: Graph) -> Iterator[tuple[int, float]]:
    """Yield how many numbers each gradient has, and after which share of the backward pass it is there.

    A parameter's gradient is there after the first of the layers that read it, which the backward pass reaches last.
    """
    first = {name: node for node in reversed(graph.nodes) for name in node.inputs}
    parameters, done = set(parameters_of(graph)), 0
    total = sum(macs(graph, node) for node in graph.nodes)
    for node in reversed(graph.nodes):
        done += macs(graph, node)
        for name in dict.fromkeys(node.inputs):
            if name in parameters and first[name] is node:
                yield graph.tensors[name].elements, done / total if total else 1.0
