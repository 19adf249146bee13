"""Moves without a copy: what takes any strides reads a tensor where it lies, in another order or shape, or in part.

Attention is full of them: queries, keys and values are parts of one tensor, each transposed before products read them.
"""

from __future__ import annotations

from powerlab.engine.codegen.attributes import integers
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.program.operand import Operand

_OF_STRIDES = ("Product", "Slice")
"""Operators that are as fast whatever the strides are."""

_OF_RUNS = ("Elementwise", "Softmax")
"""Those that are where the elements of the last axis follow on each other."""

_LEAST_RUN = 16
"""So many elements: beginning another run costs as much as some of them."""


def lower_in_place(builder: Builder, node: Node) -> bool:
    """Let the result of a Reshape, Transpose or Slice be a view, if all that reads it takes one; return whether.

    A view it is only of what lies in no blocks: no layout is made for it.
    """
    source = node.inputs[0]
    if builder.is_whole(source) or not builder.has_strides(source):
        return False
    seen = _moved(builder.graph, node, builder.general(source))
    if seen is None or not _is_read_in_place(builder, node.outputs[0], seen):
        return False
    builder.show(node.outputs[0], seen)
    return True


def sliced(operand: Operand, node: Node, sizes: tuple[int, ...]) -> Operand:
    """Return the part of an operand that a Slice takes; ``sizes`` are those of its result."""
    for axis, (start, step) in enumerate(zip(integers(node, "starts"), integers(node, "steps"), strict=True)):
        operand = operand.sliced(axis, start, sizes[axis], step)
    return operand


def _moved(graph: Graph, node: Node, operand: Operand) -> Operand | None:
    """Return what a node makes of an operand; None where that is no view of it."""
    shape = graph.shape(node.outputs[0])
    match node.op_type:
        case "Reshape":
            return operand.reshaped(shape)
        case "Transpose":
            return operand.permuted(integers(node, "perm"))
        case "Slice":
            return sliced(operand, node, shape)
    return None


def _is_read_in_place(builder: Builder, name: str, seen: Operand) -> bool:
    """Tell whether all that reads a tensor takes it as it is seen: products do, and moves, which are views or copy."""
    readers = builder.readers(name)
    if not readers or name in builder.graph.output_names():
        return False
    in_runs = seen.strides[-1:] == (1,) and seen.sizes[-1] >= _LEAST_RUN
    for reader in readers:
        if reader.op_type in _OF_STRIDES or (in_runs and reader.op_type in _OF_RUNS):
            continue
        moved = _moved(builder.graph, reader, seen)
        if moved is None or not _is_read_in_place(builder, reader.outputs[0], moved):
            return False
    return True
