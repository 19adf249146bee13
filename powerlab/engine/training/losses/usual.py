"""Losses of models with one output: softmax cross entropy and the mean squared error."""

from __future__ import annotations

import math

import numpy as np

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Array, Graph, quoted
from powerlab.engine.ops.view import FLOAT32, INT64
from powerlab.engine.training.losses.base import Loss, Target
from powerlab.engine.training.tape import GraphTape


def softmax_cross_entropy(tape: GraphTape, network: Graph) -> Loss:
    """Return the mean of -log softmax(logits)[label] over a batch, and over pixels where these have labels.

    Its gradient is (softmax(logits) - one at the label) / count; logits have the shape (batch, classes, ...). They are
    what a softmax at the end of the network takes.
    """
    output = _logits(network)
    shape = tape.shape(output)
    if len(shape) < 2:
        raise PowerlabError(
            f"the output {quoted(output)} has the shape {list(shape)}; softmax cross entropy takes (batch, classes)."
        )
    batch, classes, *pixels = shape
    labels = tape.input("labels", (batch, *pixels), INT64)
    ladder = tape.reshape(tape.ints(range(classes)), (1, classes, *(1,) * len(pixels)))
    hot = tape("Cast", tape("Equal", tape.reshape(labels, (batch, 1, *pixels)), ladder), to=1)
    logarithms = tape("LogSoftmax", output, axis=1)
    share = tape.floats(-1 / (batch * math.prod(pixels)))
    value = tape("Mul", tape("ReduceSum", tape("Mul", hot, logarithms), keepdims=0), share)
    seed = tape("Mul", tape("Sub", hot, tape("Exp", logarithms)), share)

    def prepare(given: Array) -> dict[str, Array]:
        for label in (int(given.min(initial=0)), int(given.max(initial=0))):
            if not 0 <= label < classes:
                raise PowerlabError(
                    f"the label {label} is out of range: the model tells {classes} classes apart, so labels go from 0 "
                    f"to {classes - 1}."
                )
        return {labels: given}

    target = Target(name=labels, shape=(batch, *pixels), dtype=INT64, prepare=prepare)
    return Loss(value, target, {output: seed})


def mean_squared_error(tape: GraphTape, network: Graph) -> Loss:
    """Return the mean of the squares of output - target over all elements, as PyTorch does."""
    output = _only_output(network)
    shape = tape.shape(output)
    count = int(np.prod(shape))
    target = tape.input("targets", shape)
    apart = tape("Sub", output, target)
    value = tape("ReduceMean", tape("Mul", apart, apart), keepdims=0)
    seed = tape("Mul", apart, tape.floats(2 / count))
    wanted = Target(name=target, shape=shape, dtype=FLOAT32, prepare=lambda given: {target: given})
    return Loss(value, wanted, {output: seed})


def _only_output(graph: Graph) -> str:
    floats = [info.name for info in graph.outputs if info.dtype == FLOAT32]
    if len(floats) != 1:
        raise PowerlabError(
            f"the model {quoted(graph.name)} has {len(floats)} outputs of numbers; training takes models with one."
        )
    return floats[0]


def _logits(graph: Graph) -> str:
    """Return what the last softmax of a network takes, or its output where it ends in none."""
    output = _only_output(graph)
    maker = graph.producers().get(output)
    return maker.inputs[0] if maker is not None and maker.op_type == "Softmax" else output
