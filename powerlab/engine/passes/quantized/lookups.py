"""Functions between bytes become tables: of 256 bytes there are 256 results, however many operators they pass through.

Whatever is computed from one dequantized tensor alone, number by number, before it is quantized again, is computed now
for each byte: an activation that exporters wrote out, such as ``x * sigmoid(x)``, costs no more than a short one.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from powerlab.engine.ir.graph import Array, Graph, Node, TensorInfo
from powerlab.engine.ops import OPERATORS
from powerlab.engine.ops.quantization import UINT8, dequantize, quantize
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.quantized.scales import byte_steps
from powerlab.engine.passes.rewriting import Rewriter
from powerlab.engine.passes.simplify.dead_nodes import drop_dead

BYTES = 256
_MOST_NODES = 16
"""Of a function: an activation that is written out has a handful."""
_BY_NUMBER = frozenset(
    {
        "Abs",
        "Add",
        "Celu",
        "Clip",
        "Div",
        "Elu",
        "Erf",
        "Exp",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "LeakyRelu",
        "Max",
        "Min",
        "Mish",
        "Mul",
        "Neg",
        "Pow",
        "Relu",
        "Selu",
        "Sigmoid",
        "Softplus",
        "Softsign",
        "Sqrt",
        "Sub",
        "Swish",
        "Tanh",
    }
)
"""Operators each of whose numbers is made of those in the same place, and of constants."""


def look_up_functions(graph: Graph) -> Graph:
    """Return the graph with a QuantLookup wherever bytes are made of the bytes in the same places of one tensor."""
    if "Quantize" not in graph.operators:
        return graph
    rewriter = Rewriter(graph)
    functions = _Functions(graph)
    nodes = [functions.as_lookup(node, rewriter) or node for node in graph.nodes]
    return drop_dead(rewriter.finish(nodes)) if rewriter.constants else graph


class _Functions:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._producers = graph.producers()
        self._readers = graph.consumers()
        self._outputs = graph.output_names()

    def as_lookup(self, node: Node, rewriter: Rewriter) -> Node | None:
        """Return the look-up in place of a Quantize; None where what it reads is no function of one tensor of bytes."""
        if node.op_type != "Quantize":
            return None
        members, back = self._members(node)
        if back is None or not members:
            return None
        bytes_made = quantize(self._values(members, back), *_scale(node), limits=(0, BYTES - 1)).astype(UINT8)
        table, zero = rewriter.constant(f"{node.outputs[0]}.table", bytes_made), cast("int", node.attributes["zero"])
        attributes = {"zero": zero, "low": -float(zero), "high": float(BYTES - 1 - zero)}
        return Node("QuantLookup", node.name, (back.inputs[0], table), node.outputs, attributes)

    def _members(self, node: Node) -> tuple[list[Node], Node | None]:
        """Return the nodes between a Quantize and the one Dequantize that they read, those in front first."""
        shape, sources = self._graph.shape(node.inputs[0]), dict[str, Node]()
        found, left = dict[str, Node](), [node.inputs[0]]
        while left:
            name = left.pop()
            made_by = self._producers.get(name)
            if self._is_number(name) or name in found:
                continue
            if made_by is None or name in self._outputs or self._graph.shape(name) != shape or len(found) > _MOST_NODES:
                return [], None
            if made_by.op_type == "Dequantize":
                sources[made_by.inputs[0]] = made_by
            elif made_by.op_type in _BY_NUMBER:
                found[name] = made_by
                left += filter(None, made_by.inputs)
            else:
                return [], None
        inside = {id(node), *map(id, found.values())}
        if len(sources) != 1 or any(id(reader) not in inside for name in found for reader in self._readers[name]):
            return [], None
        return [one for one in self._graph.nodes if one.outputs[0] in found], next(iter(sources.values()))

    def _is_number(self, name: str) -> bool:
        return name in self._graph.kept_constants and self._graph.tensors[name].elements == 1

    def _values(self, members: list[Node], back: Node) -> Array:
        """Return what the members make of each byte."""
        every = dequantize(np.arange(BYTES), *_scale(back))
        known: dict[str, Array] = {}
        for node in members:
            given = [self._value(name, every, known) for name in node.inputs]
            infos = (None if one is None else TensorInfo("", one.shape, one.dtype) for one in given)
            made = TensorInfo(node.outputs[0], (BYTES,), every.dtype)
            known |= OPERATORS[node.op_type].folded(NodeView(node, tuple(infos), tuple(given)), [made])
        return known[members[-1].outputs[0]]

    def _value(self, name: str, every: Array, known: dict[str, Array]) -> Array | None:
        if not name:
            return None
        return self._graph.constants[name].reshape(()) if self._is_number(name) else known.get(name, every)


def _scale(node: Node) -> tuple[Array, Array]:
    """Return the step and the zero point of a Quantize or Dequantize."""
    step, zero = byte_steps(node)
    return np.asarray(step, np.float32), np.asarray(zero, np.int64)
