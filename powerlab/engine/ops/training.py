"""Operators that only steps of training have: no file may hold them, gradients' rules add them.

They are in the form in which they are lowered, so no pass touches them but that of :mod:`powerlab.engine.training`.
"""

from __future__ import annotations

from collections.abc import Callable

from powerlab.engine.ops.base import Operator, same_as_input
from powerlab.engine.ops.gradients.normalisation import batch_norm_gradient
from powerlab.engine.ops.gradients.recurrent import gru_cell_gradient, lstm_cell_gradient
from powerlab.engine.ops.view import FLOAT32, NodeView, Spec


def _shaped(view: NodeView) -> Spec:
    """Return the shape that the attribute ``shape`` tells."""
    return view.integers("shape", ()), FLOAT32


def _channels(view: NodeView) -> Spec:
    return view.shape(0)[1:2], FLOAT32


def _like(*inputs: int) -> Callable[[NodeView], tuple[Spec, ...]]:
    """Return a rule that gives outputs after the first the shapes of inputs."""
    return lambda view: tuple((view.shape(index), FLOAT32) for index in inputs)


def _kept(view: NodeView) -> tuple[Spec, ...]:
    """Return what an optimizer keeps of a weight: as much as it has elements, each time."""
    return (same_as_input(view),) * view.integer("kept", 0)


TRAINING: dict[str, Operator] = {
    "AdamUpdate": Operator(same_as_input, infer_more=_kept),
    "AveragePoolGradient": Operator(_shaped),
    "BatchNorm": Operator(same_as_input, infer_more=lambda view: (_channels(view),) * 4, gradient=batch_norm_gradient),
    "BatchNormGradient": Operator(same_as_input, infer_more=lambda view: (_channels(view),) * 2),
    "ChannelSums": Operator(_channels),
    "ClampGradient": Operator(same_as_input),
    "ConvWeightGradient": Operator(_shaped),
    "GlobalAveragePoolGradient": Operator(_shaped),
    "GruCell": Operator(same_as_input, infer_more=_like(2), gradient=gru_cell_gradient),
    "GruCellGradient": Operator(same_as_input, infer_more=_like(2, 1)),
    "LRNGradient": Operator(same_as_input),
    "LstmCell": Operator(same_as_input, infer_more=_like(2, 2), gradient=lstm_cell_gradient),
    "LstmCellGradient": Operator(same_as_input, infer_more=_like(1)),
    "MaxPoolGradient": Operator(same_as_input),
    "SgdUpdate": Operator(same_as_input, infer_more=_kept),
}
"""Operator → rule.

- ``AveragePoolGradient``, ``MaxPoolGradient``, ``GlobalAveragePoolGradient``: of what a pool read, if it looks at it,
  and the gradient of its result.
- ``BatchNorm``: of images, scale, shift, running mean and variance; gives the normalised images, clamped, both running
  ones after, the batch's mean, and one over its deviation. ``BatchNormGradient``: of its images, the gradient of its
  result, scale, shift, the batch's mean and one over its deviation, with the norm's clamp; gives the gradients of
  images, scale and shift. To that of images a seventh input is added.
- ``ChannelSums``: of images, the sum of all pixels of each channel.
- ``ClampGradient``: of what an activation made and its gradient.
- ``ConvWeightGradient``: of a convolution's images and the gradient of its result.
- ``GruCell``: of a GRU that resets behind its product: of the gates' sums of the input and of the state (sequences,
  3 * units) and the hidden units before; gives the activated gates and the hidden units. ``GruCellGradient``: of the
  activated gates, the sums of the state, the hidden units before and the gradient of those behind; gives the gradients
  of the input's sums, of the hidden units before and of the state's sums.
- ``LstmCell``: of two summands of the gates (sequences, 4 * units) and the cells before; gives the activated gates, the
  cells and the hidden units. ``LstmCellGradient``: of the activated gates, the cells before and behind, and the
  gradients of cells and hidden units; gives the gradients of the gates' sums and of the cells before.
- ``LRNGradient``: of what a local response normalisation read and the gradient of its result.
- ``AdamUpdate``, ``SgdUpdate``: of a weight, its gradient, the ``kept`` tensors that the optimizer keeps of it, and its
  numbers for the step; give the weight and what is kept anew. The gradient is a sum, of which ``share`` counts.
"""
