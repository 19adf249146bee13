"""Views go behind what treats each element alike, so that those of neighbouring operators meet and undo one another.

A convolution over a row of pixels is one of an image of one row with a view on either side; between two of them
activations, sums and joins must not keep the views apart. Only views that keep images and channels sink.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.functions import KERNELS
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.rewriting import Rewriter

_OF_ONE = KERNELS.keys() | {"Clamp", "ScaleShift"}
_OF_SEVERAL = frozenset({"Add", "Concat", "Multiply"})


def sink_views(graph: Graph) -> Graph:
    """Return the graph with every Reshape of images behind the element-wise operators that read it."""
    if "Reshape" not in graph.operators:
        return graph
    rewriter = Rewriter(graph)
    made: dict[str, Node] = {}
    for node in graph.nodes:
        sources = _sources(rewriter, made, node)
        if sources is None:
            made[node.outputs[0]] = node
            continue
        output = node.outputs[0]
        shapes = [rewriter.shape(name) for name in sources]
        channels = graph.shape(output)[1]
        inner = rewriter.tensor(
            f"{output}.inner", (shapes[0][0], channels, *shapes[0][2:]), graph.tensors[output].dtype
        )
        made[inner] = replace(node, inputs=(*sources, *node.inputs[len(sources) :]), outputs=(inner,))
        made[output] = view_node(f"{node.name}.view", inner, output)
    return rewriter.finish(tuple(made.values()))


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
