"""A sum of what a convolution's activation made and another tensor is computed as the convolution ends.

Darknet's networks add so (J. Redmon and A. Farhadi, YOLOv3, https://arxiv.org/abs/1804.02767); elsewhere a residual
comes before the activation, and :mod:`powerlab.engine.passes.fuse.residuals` sees to it. This is for the kernels of the
cores alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import ends_in_function, is_linear
from powerlab.engine.passes.fuse.residuals import with_sums


def with_late_residuals(graph: Graph) -> Graph:
    """Return an optimised graph with such sums in the convolutions; of two candidates the later one takes it."""
    return with_sums(graph, _behind_activation)


def _behind_activation(conv: Node, add: Node) -> Mapping[str, object] | None:
    return {**conv.attributes, "adds_last": True} if is_linear(add) and not ends_in_function(conv) else None
