"""A transposed convolution as ordinary ones: every stride-th pixel of its result is a convolution of its input.

With stride s there are s such phases an axis; each needs only the taps of the kernel that reach it, so that nothing is
multiplied by zeros put between pixels (V. Dumoulin, F. Visin, https://arxiv.org/abs/1603.07285, section 4).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from msgspec import Struct

from powerlab.engine.codegen.attributes import integers
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.program.layout import NO_HALO, Halo, divide_up


class AxisPhase(Struct, frozen=True, kw_only=True):
    """The pixels of a result, along one axis, that lie a stride apart.

    Attributes:
        first: the first of them.
        count: how many they are.
        taps: the places in the kernel that reach them, in the order of the input pixels they are multiplied with; none
            where the stride leaves pixels out.
        dilation: how far apart these input pixels are.
        pad: how many pixels before the input the first one needs; negative where it begins inside.
        behind: how many pixels behind the input the last one needs.
    """

    first: int
    count: int
    taps: tuple[int, ...]
    dilation: int
    pad: int
    behind: int


def axis_phases(*, kernel: int, stride: int, dilation: int, pad: int, in_size: int, out_size: int) -> list[AxisPhase]:
    """Return the phases of one axis; ``pad`` pixels are cut off before the result."""
    found = []
    for first in range(min(stride, out_size)):
        count = divide_up(out_size - first, stride)
        taps = [tap for tap in range(kernel) if (first + pad - tap * dilation) % stride == 0]
        apart = (taps[1] - taps[0]) * dilation // stride if len(taps) > 1 else 1
        reach = (len(taps) - 1) * apart if taps else 0
        before = reach - (first + pad - taps[0] * dilation) // stride if taps else 0
        behind = count - 1 + reach - before - (in_size - 1)
        found.append(
            AxisPhase(
                first=first,
                count=count,
                taps=tuple(reversed(taps)),
                dilation=apart,
                pad=before,
                behind=behind,
            )
        )
    return found


def phases(graph: Graph, node: Node) -> Iterator[tuple[AxisPhase, AxisPhase]]:
    """Return the phases of a FusedConvTranspose: of its rows, each with those of its columns."""
    image, size = graph.shape(node.inputs[0])[2:], graph.shape(node.outputs[0])[2:]
    kernel = graph.shape(node.inputs[1])[2:]
    rows, columns = (
        axis_phases(
            kernel=kernel[axis],
            stride=integers(node, "strides")[axis],
            dilation=integers(node, "dilations")[axis],
            pad=integers(node, "pads")[axis],
            in_size=image[axis],
            out_size=size[axis],
        )
        for axis in range(2)
    )
    return itertools.product(rows, columns)


def transposed_halo(graph: Graph, node: Node) -> Halo:
    """Return the zeros a FusedConvTranspose needs around the planes of its input."""
    halo = NO_HALO
    for rows, columns in phases(graph, node):
        edges = (rows.pad, columns.pad, rows.behind, columns.behind)
        halo = halo.union(Halo(*(max(0, edge) for edge in edges)))
    return halo
