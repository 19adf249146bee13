"""Pixels that are moved before they are rounded to bytes are rounded first: a quarter as much is moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from powerlab.engine.ir.graph import IMAGE_AXES, Graph, Node
from powerlab.engine.ops.moving import pad_mode, pixels_around_images
from powerlab.engine.ops.quantization import UINT8
from powerlab.engine.ops.resizing import resizing, whole_factors
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.quantized.scales import byte_steps, whole_range
from powerlab.engine.passes.rewriting import Rewriter, Sole, sole_among
from powerlab.engine.passes.simplify.dead_nodes import drop_dead

_Move = tuple[str, dict[str, object]]
"""The operator on bytes that moves pixels as one on floats does, and what it is told of the move."""


def move_pixels_as_bytes(graph: Graph) -> Graph:
    """Return the graph with each Quantize in front of the pads and resizes whose result it alone reads."""
    if "Quantize" not in graph.operators:
        return graph
    producers = graph.producers()
    sole, rewriter = sole_among(producers, graph), Rewriter(graph)
    nodes: list[Node] = []
    found = False
    for node in graph.nodes:
        moves = list(_moves_before(node, graph, sole)) if node.op_type == "Quantize" else []
        found = found or bool(moves)
        nodes += _with_moves(node, moves, rewriter, producers.get) if moves else [node]
    return drop_dead(rewriter.finish(nodes)) if found else graph


def _moves_before(node: Node, graph: Graph, sole: Sole) -> Iterator[tuple[Node, _Move]]:
    """Give the nodes in front of a Quantize that move pixels for it alone, the last one first."""
    before = sole(node.inputs[0])
    while before is not None and (move := _move(NodeView.of(graph, before))) is not None:
        yield before, move
        before = sole(before.inputs[0])


def _move(view: NodeView) -> _Move | None:
    match view.node.op_type:
        case "Pad" if len(view.shape(0)) == IMAGE_AXES and (pads := pixels_around_images(view)) is not None:
            return "QuantPad", {"pads": pads, "mode": pad_mode(view)}
        case "Resize" if (factors := whole_factors(resizing(view))) is not None:
            return "QuantResize", {"factors": factors}
    return None


def _with_moves(
    quantize: Node, moves: list[tuple[Node, _Move]], rewriter: Rewriter, maker: Callable[[str], Node | None]
) -> list[Node]:
    """Return nodes that round what the first move reads, unless it was made of such bytes, and move the bytes."""
    source = moves[-1][0].inputs[0]
    nodes: list[Node] = []
    x = _bytes_before(quantize, maker(source))
    if x is None:
        x = rewriter.tensor(f"{source}.bytes", rewriter.shape(source), UINT8)
        nodes.append(replace(quantize, inputs=(source,), outputs=(x,)))
    made = [
        rewriter.tensor(f"{node.outputs[0]}.bytes", rewriter.shape(node.outputs[0]), UINT8) for node, _ in moves[1:]
    ]
    zero = byte_steps(quantize)[1]
    for (node, (operator, told)), output in zip(reversed(moves), (*reversed(made), quantize.outputs[0]), strict=True):
        nodes.append(Node(operator, node.name, (x,), (output,), {**told, **whole_range(zero)}))
        x = output
    return nodes


def _bytes_before(quantize: Node, made: Node | None) -> str | None:
    """Return the bytes that a Quantize would only make again of the floats that were made of them."""
    if made is None or made.op_type != "Dequantize" or "low" in quantize.attributes:
        return None
    return made.inputs[0] if byte_steps(made) == byte_steps(quantize) else None
