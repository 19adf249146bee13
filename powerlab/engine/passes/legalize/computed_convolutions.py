"""Convolutions whose weights are computed, as while a network trains, become matrix products of their windows.

K. Chellapilla et al., High Performance Convolutional Neural Networks for Document Processing, 2006: each window of an
image is a column of a matrix. Two nodes move elements: Windows, each axis of whose result walks along an axis of its
input; and Spread, which puts its input, elements apart, into zeros.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from powerlab.engine.ir.graph import Node
from powerlab.engine.ops.view import FLOAT32, NodeView
from powerlab.engine.passes.legalize.elementwise import each, strided
from powerlab.engine.passes.legalize.matrices import product
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.rewriting import Rewriter

_MOST_BYTES = 256 << 20
"""Of the matrix of windows: a larger one costs more than it gains, and memory."""

_FEW_PIXELS = 64
"""Results of fewer pixels an image are too narrow a matrix, so the windows of all images become one."""

Pair = tuple[int, int]


class Geometry(NamedTuple):
    """A convolution of images of two axes.

    Attributes:
        group: groups of channels.
        strides: from window to window, down and along.
        dilations: from tap to tap.
        before: rows and columns of zeros before the image.
        apart: how far apart the image's pixels are put, zeros between.
    """

    group: int
    strides: Pair
    dilations: Pair
    before: Pair
    apart: Pair = (1, 1)


class _Nodes:
    """Adds the nodes of one convolution."""

    def __init__(self, view: NodeView, rewriter: Rewriter) -> None:
        self.made: list[Node] = []
        self._rewriter, self._base = rewriter, view.node.outputs[0]
        self._name = view.node.name

    def __call__(self, op_type: str, *inputs: str, shape: Sequence[int], **attributes: object) -> str:
        """Add a node, and return its output, of the given shape."""
        output = self._rewriter.tensor(f"{self._base}.{op_type.lower()}", tuple(shape))
        self.made.append(Node(op_type, self._label(), inputs, (output,), attributes))
        return output

    def zero(self) -> str:
        """Add a constant of one zero, and return its name."""
        return self._rewriter.constant(f"{self._base}.zero", np.zeros((), np.float32))

    def view(self, source: str, shape: Sequence[int]) -> str:
        """Return a tensor in another shape."""
        output = self._rewriter.tensor(f"{self._base}.view", tuple(shape))
        self.made.append(view_node(self._label(), source, output))
        return output

    def multiply(self, left: str, right: str, shape: Sequence[int], *orders: tuple[int, ...]) -> str:
        """Return a matrix product of the given shape."""
        output = self._rewriter.tensor(f"{self._base}.product", tuple(shape))
        self.made.append(product(self._label(), (left, right), output, 1.0, *orders))
        return output

    def end(self, view: NodeView, source: str) -> list[Node]:
        """Let ``source``, of the shape of the old node's output, be that, plus the bias if there is one."""
        output = view.node.outputs[0]
        if not view.has(2):
            return [*self.made, view_node(self._name, source, output)]
        bias = self.view(view.node.inputs[2], (*view.shape(2), 1, 1))
        return [*self.made, each(self._name, strided("add", FLOAT32), (source, bias), output, FLOAT32)]

    def _label(self) -> str:
        return f"{self._name}.{len(self.made)}"


def by_windows(view: NodeView, rewriter: Rewriter, geometry: Geometry, *, turned: bool) -> Sequence[Node] | None:
    """Return the nodes of a convolution, or None where a matrix of its windows is no gain.

    Args:
        view: a Conv, or a ConvTranspose (``turned``) as the convolution of its spread image with its kernels turned.
        rewriter: takes what is added.
        geometry: of the convolution.
        turned: whether the weights are (C, O / groups, ...), each kernel to be turned round.
    """
    (images, channels, *size), weight, group = view.shape(0), view.shape(1), geometry.group
    _, outputs, *pixels = rewriter.graph.shape(view.node.outputs[0])
    kernel, inner, each_makes = weight[2:], channels // group, outputs // group
    taps, count = inner * math.prod(kernel), math.prod(pixels)
    if each_makes == 1 or inner == 1 or 4 * images * group * taps * count > _MOST_BYTES:
        return None
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, geometry.dilations, strict=True)]
    if min(geometry.before) < 0:
        return None
    placed = zip(geometry.before, size, geometry.apart, strict=True)
    ends = [before + (length - 1) * step + 1 for before, length, step in placed]
    seen_to = [(p - 1) * s + r for p, s, r in zip(pixels, geometry.strides, reach, strict=True)]
    whole = [max(pair) for pair in zip(ends, seen_to, strict=True)]
    nodes = _Nodes(view, rewriter)
    source = view.node.inputs[0]
    if geometry.apart != (1, 1) or list(size) != whole:
        steps = (1, 1, *geometry.apart)
        placing = {"before": (0, 0, *geometry.before), "steps": steps}
        source = nodes("Spread", source, nodes.zero(), shape=(images, channels, *whole), **placing)
    weights = view.node.inputs[1]
    if turned:
        weights = nodes(
            "Windows",
            weights,
            shape=(group, each_makes, inner, *kernel),
            axes=(0, 1, 0, 2, 3),
            steps=(inner, 1, 1, -1, -1),
            starts=(0, 0, kernel[0] - 1, kernel[1] - 1),
        )
    (rows, columns), (down, along) = geometry.strides, geometry.dilations
    if count >= _FEW_PIXELS:
        walk = {"axes": (0, 1, 1, 2, 3, 2, 3), "steps": (1, inner, 1, down, along, rows, columns), "starts": (0,) * 4}
        seen = nodes("Windows", source, shape=(images, group, inner, *kernel, *pixels), **walk)
        left, right = nodes.view(weights, (1, group, each_makes, taps)), nodes.view(seen, (images, group, taps, count))
        made = nodes.multiply(left, right, (images, group, each_makes, count))
    else:
        walk = {"axes": (1, 0, 2, 3, 1, 2, 3), "steps": (inner, 1, rows, columns, 1, down, along), "starts": (0,) * 4}
        seen = nodes("Windows", source, shape=(group, images, *pixels, inner, *kernel), **walk)
        left, right = nodes.view(seen, (group, images * count, taps)), nodes.view(weights, (group, each_makes, taps))
        made = nodes.multiply(left, right, (group, images * count, each_makes), (), (0, 2, 1))
        apart = nodes.view(made, (group, images, count, each_makes))
        made = nodes("Transpose", apart, shape=(images, group, each_makes, count), perm=(1, 0, 3, 2))
    return nodes.end(view, nodes.view(made, (images, outputs, *pixels)))
