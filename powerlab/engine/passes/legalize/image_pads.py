"""Images padded with their own pixels, reflected or repeated from the edge, stay whole: one kernel copies all rows.

Other devices pad them as any tensor, along one axis after the other (:mod:`.data_movement`).
"""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.moving import pad_mode, pixels_around_images
from powerlab.engine.ops.view import FLOAT32, NodeView
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _pad(view: NodeView, _rewriter: Rewriter) -> Sequence[Node] | None:
    node = view.node
    if "before" in node.attributes or view.dtype(0) != FLOAT32 or (pads := pixels_around_images(view)) is None:
        return None
    attributes = {"pads": pads, "mode": pad_mode(view)}
    return [Node("ImagePad", node.name, node.inputs[:1], node.outputs, attributes)]


def keep_image_pads(graph: Graph) -> Graph:
    """Return the graph with ImagePad in place of each Pad of images by their own pixels."""
    return rewrite_nodes(graph, {"Pad": _pad})
