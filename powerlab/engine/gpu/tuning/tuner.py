"""Times the methods of each convolution of a model on the GPU; they take turns, as on the processor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.gpu.choice.candidates import candidates
from powerlab.engine.gpu.choice.method import Method
from powerlab.engine.gpu.choice.rule import by_rule
from powerlab.engine.gpu.lowering import lower
from powerlab.engine.gpu.model import GpuModel
from powerlab.engine.gpu.target import Target
from powerlab.engine.gpu.tuning.kept import Tuned, Tunings
from powerlab.engine.ir.constants import Constants
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.tuning.tuner import winner

_TUNED = ("FusedConv", "FusedGemm")
_ROUNDS = 8
_TURN_NS = 3e6
"""How long a turn takes, at least about."""

_HOPELESS = 1.4
"""Methods that take so many times as long as the best in a first turn get no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeTuned:
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


def tuned_layers(graph: Graph, target: Target) -> dict[ConvShape, tuple[Graph, int]]:
    """Return the distinct convolutions that are matrix products: one layer as a graph, and how many there are."""
    found: dict[ConvShape, tuple[Graph, int]] = {}
    for node in graph.nodes:
        if node.op_type in _TUNED:
            alone = _alone(graph, node)
            shape = _shape(alone, target)
            if shape is not None:
                first, layers = found.get(shape, (alone, 0))
                found[shape] = first, layers + 1
    return found


def tune_model(graph: Graph, target: Target, tunings: Tunings, *, half: bool) -> Iterator[ShapeTuned]:
    """Tune the convolutions of an optimised graph, and yield after each shape.

    Raises:
        PowerlabError: the GPU cannot compute one of them.
    """
    for shape, (alone, layers) in tuned_layers(graph, target).items():
        methods = _that_run(alone, candidates(shape, target, half=half), half=half)
        times = np.array([_turn(one) for one in methods.values()])
        hopeful = [
            next(iter(methods)),
            *(m for m, ns in zip(methods, times, strict=True) if ns <= _HOPELESS * times.min()),
        ]
        hopeful = list(dict.fromkeys(hopeful))
        taken = _rounds([methods[one] for one in hopeful])
        best, gain = winner(taken)
        if best:  # the luckiest of many looks faster than it is: it has to win once more, against the rule's alone
            confirmed, gain = winner(_rounds([methods[hopeful[0]], methods[hopeful[best]]]))
            best *= confirmed
        tuned = Tuned(shape=shape, half=half, method=hopeful[best])
        tunings = tunings.added(tuned)
        yield ShapeTuned(
            tuned=tuned,
            layers=layers,
            expected=hopeful[0],
            expected_ns=float(np.median(taken[:, 0])),
            gain=gain,
            tunings=tunings,
        )


def _alone(graph: Graph, node: Node) -> Graph:
    """Return one node as a graph, what it takes from others being inputs."""
    constants = {name: graph.kept_constants[name] for name in node.inputs if name in graph.kept_constants}
    inputs = [graph.tensors[name] for name in dict.fromkeys(node.inputs) if name and name not in constants]
    output = graph.tensors[node.outputs[0]]
    tensors = {name: graph.tensors[name] for name in (*constants, *(one.name for one in inputs), output.name)}
    return replace(
        graph,
        nodes=(node,),
        inputs=tuple(inputs),
        outputs=(output,),
        constants=Constants(constants),
        tensors=tensors,
        outside={},
    )


def _shape(alone: Graph, target: Target) -> ConvShape | None:
    """Return the shape that a choice is asked for; None where there is none, as for few rows."""
    asked: list[ConvShape] = []
    expected = by_rule(target, half=False)

    def choose(shape: ConvShape) -> Method:
        asked.append(shape)
        return expected(shape)

    lower(alone, target, choose=choose)
    return asked[0] if asked else None


@dataclass(frozen=True, slots=True)
class _Timed:
    """A layer, ready to be repeated."""

    model: GpuModel
    inputs: dict[str, NDArray[np.float32]]
    first: int
    last: int

    def ns(self, times: int) -> float:
        """Return the nanoseconds of one repetition."""
        return self.model.repeat(self.inputs, self.first, self.last, times) / times


def _that_run(alone: Graph, methods: Sequence[Method], *, half: bool) -> dict[Method, _Timed]:
    """Return the layer by each method, without those that need more memory than the GPU has or shows at once."""
    label = alone.nodes[0].name or alone.nodes[0].outputs[0]
    found: dict[Method, _Timed] = {}
    for method in methods:
        try:
            model = GpuModel(alone, half=half, choose=lambda _, method=method: method)  # type: ignore[misc]
        except PowerlabError:
            if not found:
                raise
            continue
        inputs = synthetic_inputs(model.inputs, 1, model.dtypes)
        model.run(inputs)
        own = [index for index, (_, name) in enumerate(model.steps()) if name == label]
        found[method] = _Timed(model, inputs, own[0], own[-1] + 1)
    return found


def _turn(layer: _Timed) -> float:
    return layer.ns(max(1, round(_TURN_NS / max(layer.ns(1), 1))))


def _rounds(layers: Sequence[_Timed]) -> NDArray[np.float64]:
    """Return nanoseconds, shape (rounds, layers): in each round every one had its turn."""
    times = [max(1, round(_TURN_NS / max(layer.ns(1), 1))) for layer in layers]
    rounds = [[layer.ns(count) for layer, count in zip(layers, times, strict=True)] for _ in range(_ROUNDS)]
    return np.array(rounds)
