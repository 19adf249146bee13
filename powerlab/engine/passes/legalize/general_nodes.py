"""Nodes of general kernels that are not element by element, and images of three axes, which many of them take.

A General node has the attributes ``kernel``, the kernel's family, and ``fields``, numbers of the native step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from powerlab.engine.ir.graph import VOLUME_AXES, Node
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.rewriting import Rewriter


def general(name: str, kernel: str, inputs: Sequence[str], output: str, **fields: float) -> Node:
    """Return a General node that makes ``output``."""
    return Node("General", name, tuple(inputs), (output,), {"kernel": kernel, "fields": fields})


def numbers(rewriter: Rewriter, node: Node, *values: int) -> str:
    """Add the integers that a kernel wants beside its tensors, as a constant, and return its name."""
    return rewriter.constant(f"{node.outputs[0]}.numbers", np.array(values, np.int64))


def volume_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of the same image with axes of one pixel before its own, so that it has three."""
    return (*shape[:2], *(1,) * (VOLUME_AXES - len(shape)), *shape[2:])


def as_volume(rewriter: Rewriter, tensor: str, nodes: list[Node]) -> str:
    """Return a tensor of images as one of images of three axes, by a view added to ``nodes`` where it has fewer."""
    shape = rewriter.shape(tensor)
    if len(shape) == VOLUME_AXES:
        return tensor
    volume = rewriter.tensor(f"{tensor}.volume", volume_shape(shape), rewriter.graph.tensors[tensor].dtype)
    nodes.append(view_node(volume, tensor, volume))
    return volume


def from_volume(rewriter: Rewriter, output: str) -> tuple[str, list[Node]]:
    """Return the name under which a kernel makes ``output`` with three axes, and the view that it is then seen by."""
    shape = rewriter.shape(output)
    if len(shape) == VOLUME_AXES:
        return output, []
    volume = rewriter.tensor(f"{output}.volume", volume_shape(shape), rewriter.graph.tensors[output].dtype)
    return volume, [view_node(f"{output}.shape", volume, output)]
