"""Times of one convolution with cold weights, as a network has them: other layers ran since they were read last.

A plan holds the convolution many times over, each time with a copy of the weights of its own, as many as it takes to
fill the caches; the input stays where the layer before would have left it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.algorithms.table import ALGORITHMS
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.codegen.convolutions.lowering import lower_conv
from powerlab.engine.codegen.convolutions.preactivation import find_preactivations
from powerlab.engine.ir.graph import Graph, Node, TensorInfo
from powerlab.engine.ops.activation import NO_CLAMP
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import NO_HALO, Halo
from powerlab.engine.program.program import Step
from powerlab.engine.runtime.plan import build_plan, thread_pool
from powerlab.engine.target.machine import Machine

_INPUT = "x"
_SPIN_US = 200
_LEAST_COPIES, _MOST_COPIES = 2, 24
_MOST_BYTES = 96 << 20
_LEAST_ROUNDS, _MOST_ROUNDS = 5, 15
_ENOUGH_NS = 500_000_000
_PAD = Halo(1, 1, 1, 1)


def measured_ns(shape: ConvShape, choices: Sequence[Choice], machine: Machine) -> NDArray[np.float64]:
    """Return nanoseconds of one convolution, shape (rounds, choices): in each round every choice had its turn."""
    benches = [_Bench(shape, choice, machine) for choice in choices]
    for bench in benches:
        bench.time_ns()
    first = [bench.time_ns() for bench in benches]
    round_ns = sum(ns * bench.copies for ns, bench in zip(first, benches, strict=True))
    rounds = int(min(_MOST_ROUNDS, max(_LEAST_ROUNDS, _ENOUGH_NS // max(1.0, round_ns))))
    return np.array([first, *([bench.time_ns() for bench in benches] for _ in range(rounds - 1))])


class _Bench:
    """A plan that runs one convolution again and again."""

    def __init__(self, shape: ConvShape, choice: Choice, machine: Machine) -> None:
        graph = conv_graph(shape)
        node = graph.nodes[-1]
        out = node.outputs[0]
        halos = {_INPUT: ALGORITHMS[choice.algorithm].halo(shape), out: NO_HALO if shape.flat else _PAD}
        builder = Builder(
            graph,
            machine,
            halos=halos,
            places={},
            chosen={out: (shape, choice)},
            preactivations=find_preactivations(graph),
        )
        lower_conv(builder, node)
        program = builder.finish()
        # Where the image comes from outside, what brings it into its layout is part of the algorithm.
        timed = [
            step
            for step in program.steps
            if step.label == node.name or (shape.from_outside and step.label.startswith(f"{_INPUT} "))
        ]
        end = program.steps.index(timed[-1]) + 1
        before = [step for step in program.steps[:end] if step not in timed]
        self.copies = _copies(timed, machine)
        self._first, self._last = len(before), len(before) + self.copies * len(timed)
        steps = (*before, *(timed * self.copies), *program.steps[end:])
        self._plan = build_plan(replace(program, steps=steps), machine.tier, thread_pool(machine.threads, _SPIN_US))
        generator = np.random.default_rng(0)
        self._inputs = [generator.standard_normal(info.shape, dtype=np.float32) for info in graph.inputs]
        self._outputs = [np.empty(info.shape, np.float32) for info in graph.outputs]
        self._plan.run(self._inputs, self._outputs)

    def time_ns(self) -> float:
        """Return nanoseconds of one convolution."""
        total: int = self._plan.repeat(self._inputs, self._outputs, self._first, self._last, 1)
        return total / self.copies


def conv_graph(shape: ConvShape) -> Graph:
    """Return a graph of one FusedConv of this shape, with random weights, and of the ScaleShift it may begin with."""
    generator = np.random.default_rng(0)
    weights = (shape.outputs, shape.inputs // shape.groups, *shape.kernel)
    constants = {
        "weights": generator.standard_normal(weights, dtype=np.float32),
        "bias": generator.standard_normal(shape.outputs, dtype=np.float32),
    }
    out = TensorInfo("out", (shape.images, shape.outputs, *shape.size))
    inputs = [TensorInfo(_INPUT, (shape.images, shape.inputs, *shape.in_size))]
    source, before = _INPUT, []
    if shape.preactivated:
        constants["scale"] = generator.standard_normal(shape.inputs, dtype=np.float32)
        constants["shift"] = generator.standard_normal(shape.inputs, dtype=np.float32)
        source, relu = "scaled", {"clamp": (0.0, math.inf)}
        before = [Node("ScaleShift", source, (_INPUT, "scale", "shift"), (source,), relu)]
    if shape.residual:
        inputs.append(TensorInfo("residual", out.shape))
    names = (source, "weights", "bias", "residual" if shape.residual else "")
    attributes = {
        "strides": shape.strides,
        "dilations": shape.dilations,
        "pads": (*shape.pads, 0, 0),  # what follows the image is given by the sizes
        "group": shape.groups,
        "clamp": NO_CLAMP,
    }
    node = Node("FusedConv", "conv", names, (out.name,), attributes)
    made = [TensorInfo(one.outputs[0], inputs[0].shape) for one in before]
    tensors = [*inputs, *made, out, *(TensorInfo(name, value.shape) for name, value in constants.items())]
    return Graph("tuning", (*before, node), tuple(inputs), (out,), constants, {info.name: info for info in tensors})


def _copies(timed: Sequence[Step], machine: Machine) -> int:
    """Return how many copies of the weights fill the caches."""
    weight_bytes = sum(step.weights.nbytes for step in timed if step.weights is not None)
    wanted = min(_MOST_BYTES, 2 * machine.caches.l2_bytes * machine.threads + machine.caches.l3_bytes)
    return min(_MOST_COPIES, max(_LEAST_COPIES, -(-wanted // max(1, weight_bytes))))
