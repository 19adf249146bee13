"""A first convolution with a large kernel and stride, as a Winograd convolution of stride 1 over more channels.

Pixels a stride apart become channels, and the kernel falls apart in the same way, with zeros where it does not fill
whole strides: the same sums, for which Winograd's algorithms save more than the zeros cost. AlexNet's first
convolution, 11 x 11 with stride 4 on 3 channels, becomes one of 3 x 3 on 48 channels, with a third of the
multiplications.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.algorithms.winograd import WinogradConvolution
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.codegen.pack import fold_strides
from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import NO_HALO, Halo, blocked, divide_up, shape4
from powerlab.engine.program.storage import FLOAT_BYTES
from powerlab.engine.target.machine import Machine
from powerlab.engine.target.tiers import Tier

_STRIDES = (2, 4)
"""What the kernel ``space_to_depth`` folds."""


class FoldedConvolution(Struct, frozen=True):
    """Convolutions over images from outside, of equal strides that go into the kernel as often as ``inner`` has taps.

    Attributes:
        inner: computes the convolution of stride 1.
    """

    inner: WinogradConvolution

    @property
    def name(self) -> str:
        """Return how choices call it."""
        return f"folded_{self.inner.name}"

    def applies(self, shape: ConvShape, tier: Tier) -> bool:
        """Tell whether it can compute ``shape``."""
        stride, across = shape.strides
        if not shape.from_outside or shape.groups != 1 or shape.dilations != (1, 1):
            return False
        if stride != across or stride not in _STRIDES or tier.vector_width % stride:
            return False
        return self.inner.applies(_folded(shape), tier)

    def candidates(self, shape: ConvShape, machine: Machine) -> Sequence[Choice]:
        """Return the cuts worth a try."""
        return [replace(choice, algorithm=self.name) for choice in self.inner.candidates(_folded(shape), machine)]

    def cycles(self, shape: ConvShape, choice: Choice, machine: Machine) -> float:
        """Return how many cycles of a core the convolution is expected to take."""
        folded = _folded(shape)
        moved = FLOAT_BYTES * shape.images * folded.inputs * folded.in_size[0] * folded.in_size[1]
        return self.inner.cycles(folded, choice, machine) + moved / machine.memory_bytes_per_cycle / machine.threads

    def halo(self, shape: ConvShape) -> Halo:
        """Return no zeros: they are made where the image is folded."""
        return NO_HALO

    def emit(self, builder: Builder, node: Node, shape: ConvShape, choice: Choice) -> None:
        """Append the steps that fold the image and compute a FusedConv."""
        name, folded, stride = node.inputs[0], _folded(shape), shape.strides[0]
        images = shape4(builder.graph.shape(name))[0]  # of the batch, of which the convolution may take one at a time
        sizes = (images, folded.inputs, *folded.in_size)
        x = builder.in_arena(blocked(sizes, builder.tier.vector_width, self.inner.halo(folded)))
        builder.emit(
            "space_to_depth",
            f"{name} folded",
            x,
            builder.external(name),
            stride_h=stride,
            stride_w=stride,
            pad_top=shape.pads[0],
            pad_left=shape.pads[1],
        )
        outputs = builder.graph.shape(node.inputs[1])[0]
        weights = derived(
            builder.kept(node.inputs[1]),
            (outputs, folded.inputs, *folded.kernel),
            partial(fold_strides, stride=stride),
        )
        self.inner.emit_on(builder, node, folded, choice, x=x, weights=weights)


def _folded(shape: ConvShape) -> ConvShape:
    """Return the convolution of stride 1."""
    stride = shape.strides[0]
    rows, columns = (divide_up(length, stride) for length in shape.kernel)
    return replace(
        shape,
        inputs=shape.inputs * stride**2,
        kernel=(rows, columns),
        strides=(1, 1),
        pads=(0, 0),
        in_size=(shape.size[0] + rows - 1, shape.size[1] + columns - 1),
    )
