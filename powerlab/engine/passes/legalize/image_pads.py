"""Images padded with their own pixels, reflected or repeated from the edge, stay whole: one kernel copies all rows.

Other devices pad them as any tensor, along one axis after the other (:mod:`.data_movement`).
"""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.ir.graph import IMAGE_AXES, Graph, Node
from powerlab.engine.ops.moving import pad_mode, pixels_around_images
from powerlab.engine.ops.view import FLOAT32, NodeView
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _pad(view: NodeView, rewriter: Rewriter) -> Sequence[Node] | None:
    node, shape = view.node, view.shape(0)
    if "before" in node.attributes or view.dtype(0) != FLOAT32 or (pads := pixels_around_images(view)) is None:
        return None
    attributes, x, output = {"pads": pads, "mode": pad_mode(view)}, node.inputs[0], node.outputs[0]
    if len(shape) == IMAGE_AXES:
        return [Node("ImagePad", node.name, (x,), (output,), attributes)]
    row, made = (
        rewriter.tensor(f"{name}.image", (*sizes[:2], 1, sizes[2]))
        for name, sizes in ((x, shape), (output, rewriter.shape(output)))
    )
    return [
        view_node(f"{node.name}.image", x, row),
        Node("ImagePad", node.name, (row,), (made,), attributes),
        view_node(f"{node.name}.shape", made, output),
    ]


def keep_image_pads(graph: Graph) -> Graph:
    """Return the graph with ImagePad in place of each Pad of images by their own pixels."""
    return rewrite_nodes(graph, {"Pad": _pad})
