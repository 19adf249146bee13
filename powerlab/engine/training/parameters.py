"""Which constants of a network are its parameters: those that training moves."""

from __future__ import annotations

from powerlab.engine.ir.graph import Graph
from powerlab.engine.ops.view import FLOAT32

_PLACES: dict[str, tuple[int, ...]] = {
    "Add": (0, 1),
    "BatchNorm": (1, 2),
    "Conv": (1, 2),
    "ConvTranspose": (1, 2),
    "GRU": (1, 2, 3),
    "Gather": (0,),
    "Gemm": (1, 2),
    "GroupNormalization": (1, 2),
    "InstanceNormalization": (1, 2),
    "LSTM": (1, 2, 3),
    "LayerNormalization": (1, 2),
    "MatMul": (0, 1),
    "Mul": (0, 1),
    "PRelu": (1,),
    "RMSNormalization": (1,),
    "RNN": (1, 2, 3),
}
"""Operator → the inputs that hold parameters where they are constants."""

_CARRIERS = frozenset({"Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators through which a parameter may reach its place."""


def parameters_of(graph: Graph) -> tuple[str, ...]:
    """Return the names of a graph's parameters, in the order in which it first reads them.

    Numbers alone, such as the square root that divides attention's scores, are none.
    """
    names: set[str] = set()
    for node in reversed(graph.nodes):
        places = (0,) if node.op_type in _CARRIERS and node.outputs[0] in names else _PLACES.get(node.op_type, ())
        names.update(filter(None, (node.input(place) for place in places)))
    found = [
        name
        for name in dict.fromkeys(name for node in graph.nodes for name in node.inputs)
        if name in names and name in graph.kept_constants
    ]
    return tuple(name for name in found if graph.tensors[name].dtype == FLOAT32 and graph.tensors[name].elements > 1)
