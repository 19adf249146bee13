"""Functions behind layers of bytes, which oneDNN computes before it rounds: its post-ops."""

from __future__ import annotations

from msgspec.structs import replace

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import NO_SLOPE, slope_of
from powerlab.engine.passes.quantized.scales import byte_steps
from powerlab.engine.passes.rewriting import Sole, sole_among
from powerlab.engine.passes.simplify.dead_nodes import drop_dead

_OF_ROWS = {"Gelu": "gelu", "HardSwish": "hardswish", "Silu": "swish"}
"""Function → post-op of what is fully connected. Behind convolutions bytes come first, which the functions read."""


def with_post_ops(graph: Graph) -> Graph:
    """Return the graph with a QuantConv that has an attribute ``function`` for each whose floats pass one alone.

    Its bytes have the scale of the Quantize that they went to, of which it keeps the ``step``.
    """
    sole = sole_among(graph.producers(), graph)
    nodes = [(_fused(graph, sole, node) if node.op_type == "Quantize" else None) or node for node in graph.nodes]
    return drop_dead(graph.rewritten(nodes))


def _fused(graph: Graph, sole: Sole, node: Node) -> Node | None:
    """Return the layer that makes the bytes of a Quantize, with what lies between; None where others take part."""
    function = _before_views(sole, node.inputs[0])
    if function is None or function.op_type not in _OF_ROWS:
        return None
    layer = _before_views(sole, function.inputs[0])
    if layer is None or layer.op_type != "QuantConv" or not layer.attributes.get("floats") or layer.input(4):
        return None
    shape = graph.shape(node.outputs[0])
    if graph.shape(layer.outputs[0]) != shape or len(shape) != 2 or slope_of(layer) != NO_SLOPE:
        return None
    step, zero = byte_steps(node)
    changed = {"floats": False, "function": _OF_ROWS[function.op_type], "step": step, "zero": zero}
    attributes = {**layer.attributes, **changed, "low": -zero, "high": 255 - zero}
    return replace(layer, outputs=node.outputs, attributes=attributes)


def _before_views(sole: Sole, tensor: str) -> Node | None:
    """Return what makes a tensor, in whatever shape, if nothing else reads it."""
    node = sole(tensor)
    while node is not None and node.op_type == "Reshape":
        node = sole(node.inputs[0])
    return node
