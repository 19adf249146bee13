"""Views go behind what treats each element alike, so that those of neighbouring operators meet and undo one another.

A convolution over a row of pixels is one of an image of one row with a view on either side; between two of them
activations, sums and joins must not keep the views apart. Only views that keep images and channels sink. Transposes
go behind functions of one number, which then may end the convolution before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.functions import KERNELS
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.rewriting import Rewriter, Sole, sole_among

_ALIKE = KERNELS.keys() | {"Clamp"}
_OF_ONE = _ALIKE | {"ScaleShift"}
_OF_SEVERAL = frozenset({"Add", "Concat", "Multiply"})


def sink_views(graph: Graph) -> Graph:
    """Return the graph with every Reshape of images behind the element-wise operators that read it, and Transposes."""
    rewriter = Rewriter(graph)
    made: dict[str, Node] = {}
    sole = sole_among(made, graph)
    for node in graph.nodes:
        _sink(node, rewriter, made, sole)
    return rewriter.finish(tuple(made.values()))


def _sink(node: Node, rewriter: Rewriter, made: dict[str, Node], sole: Sole) -> None:
    """Put a node where it belongs: before the views it reads, and those before that, or where it stands."""
    output = node.outputs[0]
    turned, sources = _turned(node, sole), _sources(rewriter, made, node)
    if turned is not None:
        inner = rewriter.tensor(f"{output}.inner", rewriter.shape(turned.inputs[0]), rewriter.dtype(output))
        del made[turned.outputs[0]]
        _sink(replace(node, inputs=turned.inputs, outputs=(inner,)), rewriter, made, sole)
        made[output] = Node("Transpose", turned.name, (inner,), (output,), turned.attributes)
    elif sources is not None:
        shape, channels = rewriter.shape(sources[0]), rewriter.shape(output)[1]
        inner = rewriter.tensor(f"{output}.inner", (shape[0], channels, *shape[2:]), rewriter.dtype(output))
        rest = node.inputs[len(sources) :]
        _sink(replace(node, inputs=(*sources, *rest), outputs=(inner,)), rewriter, made, sole)
        made[output] = view_node(f"{node.name}.view", inner, output)
    else:
        made[output] = node


def _turned(node: Node, sole: Sole) -> Node | None:
    """Return the Transpose that a function of one number alone reads."""
    before = sole(node.inputs[0]) if node.op_type in _ALIKE else None
    return before if before is not None and before.op_type == "Transpose" else None


def _sources(rewriter: Rewriter, made: Mapping[str, Node], node: Node) -> tuple[str, ...] | None:
    """Return what the views that a node reads show; None where it has to read them as they are."""
    if node.op_type in _OF_ONE:
        count = 1
    elif node.op_type in _OF_SEVERAL:
        count = len(node.inputs)
    else:
        return None
    views = [made.get(name) for name in node.inputs[:count]]
    sources = [view.inputs[0] for view in views if view is not None and view.op_type == "Reshape"]
    if len(sources) < count or any(len(rewriter.shape(name)) < 2 for name in node.inputs[:count]):
        return None
    inner, outer = ([rewriter.shape(name) for name in names] for names in (sources, node.inputs[:count]))
    keeps = all(old[:2] == new[:2] for old, new in zip(inner, outer, strict=True))
    alike = len({shape[2:] for shape in inner}) == len({shape[2:] for shape in outer}) == 1
    joins = node.op_type != "Concat" or node.attributes["axis"] == 1
    return tuple(sources) if keeps and alike and joins else None
