"""Losses: what a step of training makes smaller. A new one is a function and a line in :data:`LOSSES`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Array, quoted
from powerlab.engine.ops.view import INT64
from powerlab.engine.training.tape import GraphTape


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a network shall learn to give.

    Attributes:
        input: name of the input of the graph that takes it.
        classes: labels are integers from 0 to one less; None: they are numbers.
    """

    input: str
    classes: int | None = None

    def check(self, labels: Array) -> None:
        """Raise PowerlabError where a label is out of range."""
        if self.classes is None or labels.size == 0:
            return
        for label in (int(labels.min()), int(labels.max())):
            if not 0 <= label < self.classes:
                raise PowerlabError(
                    f"the label {label} is out of range: the model tells {self.classes} classes apart, so labels go "
                    f"from 0 to {self.classes - 1}."
                )


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss in the graph.

    Attributes:
        value: the tensor that holds it, a single number.
        target: what it compares with.
        seeds: its gradients by the outputs of the network.
    """

    value: str
    target: Target
    seeds: Mapping[str, str]


def softmax_cross_entropy(tape: GraphTape, output: str) -> Loss:
    """Return the mean of -log softmax(logits)[label] over a batch, and over pixels where these have labels.

    Its gradient is (softmax(logits) - one at the label) / count; logits have the shape (batch, classes, ...).
    """
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
    return Loss(value, Target(input=labels, classes=classes), {output: seed})


def mean_squared_error(tape: GraphTape, output: str) -> Loss:
    """Return the mean of the squares of output - target over all elements, as PyTorch does."""
    shape = tape.shape(output)
    count = int(np.prod(shape))
    target = tape.input("targets", shape)
    apart = tape("Sub", output, target)
    value = tape("ReduceMean", tape("Mul", apart, apart), keepdims=0)
    return Loss(value, Target(input=target), {output: tape("Mul", apart, tape.floats(2 / count))})


LOSSES: dict[str, Callable[[GraphTape, str], Loss]] = {
    "mse": mean_squared_error,
    "softmax_cross_entropy": softmax_cross_entropy,
}
"""Name → what adds it to a graph."""


def loss_named(name: str) -> Callable[[GraphTape, str], Loss]:
    """Return what adds a loss.

    Raises:
        PowerlabError: there is none of this name.
    """
    if name not in LOSSES:
        known = ", ".join(sorted(LOSSES))
        raise PowerlabError(f"there is no loss {name!r}{meant(name, sorted(LOSSES))}; known are {known}.")
    return LOSSES[name]
