"""Function fusion: a function of one number becomes the end of the convolution or product nobody else reads."""

from __future__ import annotations

from msgspec.structs import replace

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import ends_in_function
from powerlab.engine.passes.rewriting import sole_among

ENDING = ("FusedConv", "FusedGemm", "QuantConv")
"""Operators with the attribute ``function``; the function's numbers are attributes beside it."""

FUSED = (
    "Elu",
    "Gelu",
    "GeluTanh",
    "HardSigmoid",
    "HardSwish",
    "Mish",
    "Sigmoid",
    "Silu",
    "Softplus",
    "Swish",
    "Tanh",
)
"""Those that ``kernels/epilogue.hpp`` has."""


_MOVES = ("Reshape", "Transpose")
"""Behind which a function may stand as well as before them."""


def _may_end(node: Node) -> bool:
    """Tell whether a node can end in a function: one on bytes where it makes floats of nothing but its sums."""
    bytes_alone = node.op_type == "QuantConv" and (not node.attributes.get("floats") or bool(node.input(4)))
    return node.op_type in ENDING and not bytes_alone and not ends_in_function(node)


def fuse_functions(graph: Graph) -> Graph:
    """Return the graph with every function fused that can be, views and transposes between staying behind."""
    made: dict[str, Node] = {}
    sole = sole_among(made, graph)
    for node in graph.nodes:
        before, move = sole(node.inputs[0]) if node.op_type in FUSED else None, None
        while before is not None and before.op_type in _MOVES:
            before, move = sole(before.inputs[0]), move or before
        if before is None or not _may_end(before):
            made[node.outputs[0]] = node
            continue
        attributes = {**before.attributes, "function": node.op_type, **node.attributes}
        if move is None:
            del made[before.outputs[0]]
            made[node.outputs[0]] = replace(before, outputs=node.outputs, attributes=attributes)
        else:
            made[before.outputs[0]] = replace(before, attributes=attributes)
            del made[move.outputs[0]]
            made[node.outputs[0]] = replace(move, outputs=node.outputs)
    return graph.rewritten(made.values())
