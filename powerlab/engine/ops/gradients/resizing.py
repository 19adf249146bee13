"""Gradients of Resize and Upsample by whole factors of the nearest pixel: sums over what each pixel became.

Other ways of resizing have none yet.
"""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.ops.gradients.base import Gradient, Tape
from powerlab.engine.ops.resizing import resizing, whole_factors
from powerlab.engine.ops.view import NodeView


def _resize(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    resize = resizing(view)
    if not resize.axes:
        return [gradients[0]]
    factors = whole_factors(resize)
    if factors is None:
        view.fail("resizes otherwise than by whole factors of the nearest pixel, which has no gradient in the engine")
    images, channels, height, width = view.shape(0)
    apart = tape.reshape(gradients[0], (images, channels, height, factors[0], width, factors[1]))
    return [tape("ReduceSum", apart, tape.ints([3, 5]), keepdims=0)]


GRADIENTS: dict[str, Gradient] = {"Resize": _resize, "Upsample": _resize}
"""Operator → rule."""
