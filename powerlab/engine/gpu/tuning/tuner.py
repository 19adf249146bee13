"""Times the methods of each convolution of a model on the GPU; they take turns, as on the processor."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.gpu.choice.candidates import candidates
from powerlab.engine.gpu.choice.method import Method, Numbers
from powerlab.engine.gpu.choice.rule import by_rule
from powerlab.engine.gpu.lowering import lower
from powerlab.engine.gpu.target import Target
from powerlab.engine.gpu.tuning.kept import Tuned, Tunings
from powerlab.engine.gpu.tuning.layer import Layer, alone
from powerlab.engine.gpu.tuning.timing import rounds, that_run, turn_ns
from powerlab.engine.ir.graph import Graph
from powerlab.engine.tuning.tuner import winner

_TUNED = ("FusedConv", "FusedGemm", "FusedVolumeConv", "QuantConv", "QuantVolumeConv")
_HOPELESS = 1.4
"""Methods that take so many times as long as the best in a first turn get no other."""


class ShapeTuned(Struct, frozen=True, kw_only=True):
    """One shape is done.

    Attributes:
        tuned: what was found.
        layers: how many of the model's layers have the shape.
        expected: what the rule says.
        expected_ns: the time of that.
        gain: the winner's time over that, by the median of paired ratios; 1 where the rule is right.
        tunings: all that is known now.
    """

    tuned: Tuned
    layers: int
    expected: Method
    expected_ns: float
    gain: float
    tunings: Tunings


Question = tuple[ConvShape, Numbers]
"""What a choice is asked for."""


def tuned_layers(graph: Graph, target: Target, *, half: bool) -> dict[Question, tuple[Layer, int]]:
    """Return the distinct convolutions that are matrix products: one layer of each, and how many there are."""
    found: dict[Question, tuple[Layer, int]] = {}
    for node in graph.nodes:
        if node.op_type in _TUNED:
            layer = alone(graph, node)
            question = _question(layer.graph, target, half=half)
            if question is not None:
                first, layers = found.get(question, (layer, 0))
                found[question] = first, layers + 1
    return found


def tune_model(graph: Graph, target: Target, tunings: Tunings, *, half: bool) -> Iterator[ShapeTuned]:
    """Tune the convolutions of an optimised graph, and yield after each shape.

    Args:
        graph: without chains; in bytes where those are to be tuned.
        target: the GPU.
        tunings: what is known already.
        half: whether numbers that are no bytes are stored in 16 bits.

    Raises:
        PowerlabError: the GPU cannot compute one of them.
    """
    for (shape, numbers), (layer, layers) in tuned_layers(graph, target, half=half).items():
        methods = that_run(layer, candidates(shape, target, numbers), half=half)
        times = np.array([turn_ns(one) for one in methods.values()])
        hopeful = [
            next(iter(methods)),
            *(m for m, ns in zip(methods, times, strict=True) if ns <= _HOPELESS * times.min()),
        ]
        hopeful = list(dict.fromkeys(hopeful))
        taken = rounds([methods[one] for one in hopeful])
        best, gain = winner(taken)
        if best:  # the luckiest of many looks faster than it is: it has to win once more, against the rule's alone
            confirmed, gain = winner(rounds([methods[hopeful[0]], methods[hopeful[best]]]))
            best *= confirmed
        tuned = Tuned(shape=shape, numbers=numbers, method=hopeful[best])
        tunings = tunings.added(tuned)
        yield ShapeTuned(
            tuned=tuned,
            layers=layers,
            expected=hopeful[0],
            expected_ns=float(np.median(taken[:, 0])),
            gain=gain,
            tunings=tunings,
        )


def _question(graph: Graph, target: Target, *, half: bool) -> Question | None:
    """Return what a layer asks for; None where there is no choice, as for few rows."""
    asked: list[Question] = []
    expected = by_rule(target)

    def choose(shape: ConvShape, numbers: Numbers) -> Method:
        asked.append((shape, numbers))
        return expected(shape, numbers)

    lower(graph, target, half=half, choose=choose)
    return asked[0] if asked else None
