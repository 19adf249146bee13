"""What a convolution is asked to do, without its weights: all that a choice of algorithm may depend on."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct
from msgspec.structs import replace

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.codegen.convolutions.phases import transposed_halo
from powerlab.engine.codegen.convolutions.preactivation import find_preactivations
from powerlab.engine.codegen.image_loop import looped_nodes
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.program.layout import NO_HALO, Halo, shape4
from powerlab.engine.program.storage import FLOAT_BYTES


class ConvShape(Struct, frozen=True, kw_only=True, gc=False):
    """Sizes of one convolution, and where its operands lie.

    Attributes:
        images: images that are computed together.
        inputs: input channels, of all groups.
        outputs: output channels, of all groups.
        groups: groups of channels.
        kernel: rows and columns.
        strides: down and across.
        dilations: down and across.
        pads: rows above and columns left of the image that count as zeros; what follows it is given by ``size``.
        in_size: rows and columns of the input.
        size: rows and columns of the output.
        residual: whether a tensor of the output's shape is added.
        from_outside: whether the input is an array that a run brings along, in no layout of the engine's yet.
        flat: whether no operand has a halo, so that all pixels of an image may be seen as one row.
        preactivated: whether the input is scaled, shifted and activated by the convolution itself.
    """

    images: int
    inputs: int
    outputs: int
    groups: int = 1
    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int] = (0, 0)
    in_size: tuple[int, int]
    size: tuple[int, int]
    residual: bool = False
    from_outside: bool = False
    flat: bool = False
    preactivated: bool = False

    @property
    def taps(self) -> int:
        """Return how many weights a pair of channels has."""
        return self.kernel[0] * self.kernel[1]

    @property
    def pixels(self) -> int:
        """Return how many pixels one output channel has, all images together."""
        return self.images * self.size[0] * self.size[1]

    @property
    def depthwise(self) -> bool:
        """Tell whether each output channel is made of one input channel, as many as there are of them."""
        return self.groups == self.inputs == self.outputs > 1

    @property
    def bytes_read(self) -> int:
        """Return how much of the input is read: strides wider than the kernel leave some out."""
        (in_rows, in_columns), (rows, columns) = self.in_size, self.size
        (kernel_rows, kernel_columns), (down, across) = self.kernel, self.dilations
        reached = min(in_rows, rows * kernel_rows * down) * min(in_columns, columns * kernel_columns * across)
        return FLOAT_BYTES * self.images * self.inputs * reached


def conv_shape(graph: Graph, node: Node, padded: Collection[str]) -> ConvShape:
    """Return what a FusedConv is asked to do.

    Args:
        graph: the optimised graph.
        node: the FusedConv.
        padded: the tensors that some convolution reads with padding.
    """
    images, inputs, *in_size = shape4(graph.shape(node.inputs[0]))
    _, outputs, *size = shape4(graph.shape(node.outputs[0]))
    rows, columns = graph.shape(node.inputs[1])[2:]
    top, left = integers(node, "pads")[:2]
    stride_h, stride_w = integers(node, "strides")
    dilation_h, dilation_w = integers(node, "dilations")
    operands = (node.inputs[0], node.outputs[0], node.input(3))
    return ConvShape(
        images=images,
        inputs=inputs,
        outputs=outputs,
        groups=int(number(node, "group")),
        kernel=(rows, columns),
        strides=(stride_h, stride_w),
        dilations=(dilation_h, dilation_w),
        pads=(top, left),
        in_size=(in_size[0], in_size[1]),
        size=(size[0], size[1]),
        residual=bool(node.input(3)),
        from_outside=any(info.name == node.inputs[0] for info in graph.inputs),
        flat=not any(name in padded for name in operands),
    )


def conv_shapes(graph: Graph) -> dict[str, ConvShape]:
    """Return what each FusedConv of an optimised graph is asked to do, by the name of its result."""
    padded, preactivations = padded_tensors(graph), find_preactivations(graph)
    shapes = {node.outputs[0]: conv_shape(graph, node, padded) for node in graph.nodes if node.op_type == "FusedConv"}
    for name in preactivations:
        shapes[name] = replace(shapes[name], preactivated=True)
    for node in graph.nodes[: looped_nodes(graph)]:
        if node.op_type == "FusedConv":
            shapes[node.outputs[0]] = replace(shapes[node.outputs[0]], images=1)
    return shapes


def halo_of(shape: ConvShape, size: tuple[int, int]) -> Halo:
    """Return the zeros needed around the planes of the input.

    Args:
        shape: the convolution.
        size: rows and columns of output that are computed; whole tiles may be more than there are.
    """
    last = [
        (out - 1) * stride + (kernel - 1) * dilation - pad - length + 1
        for out, stride, kernel, dilation, pad, length in zip(
            size, shape.strides, shape.kernel, shape.dilations, shape.pads, shape.in_size, strict=True
        )
    ]
    return Halo(*shape.pads, max(0, last[0]), max(0, last[1]))


def padded_tensors(graph: Graph) -> frozenset[str]:
    """Return the tensors that a convolution reads with padding, which get a halo."""
    return frozenset(
        node.inputs[0]
        for node in graph.nodes
        if (node.op_type in ("FusedConv", *MOVING_CONVOLUTIONS) and any(integers(node, "pads")))
        or (node.op_type in ("FusedConvTranspose", "ComputedConvTranspose") and transposed_halo(graph, node) != NO_HALO)
    )


MOVING_CONVOLUTIONS = ("ComputedConv", "ConvWeightGradient")
"""Operators whose weights change from run to run, and those that compute by how much."""


def moving_conv_shape(graph: Graph, node: Node) -> ConvShape:
    """Return the convolution that a ComputedConv is, or of whose weights a ConvWeightGradient is the gradient."""
    weights, result = (1, node.outputs[0]) if node.op_type == "ComputedConv" else (None, node.inputs[1])
    outputs, _, *kernel = graph.shape(node.outputs[0] if weights is None else node.inputs[weights])
    images, inputs, *in_size = graph.shape(node.inputs[0])
    size = graph.shape(result)[2:]
    strides, dilations, pads = (integers(node, name) for name in ("strides", "dilations", "pads"))
    return ConvShape(
        images=images,
        inputs=inputs,
        outputs=outputs,
        groups=int(number(node, "group")),
        kernel=(kernel[0], kernel[1]),
        strides=(strides[0], strides[1]),
        dilations=(dilations[0], dilations[1]),
        pads=(pads[0], pads[1]),
        in_size=(in_size[0], in_size[1]),
        size=(size[0], size[1]),
    )
