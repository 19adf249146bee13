"""Conv."""

from __future__ import annotations

from powerlab.engine.operators.base import Operator
from powerlab.engine.operators.view import FLOAT32, NodeView, Spec
from powerlab.engine.operators.windows import Windows, resolve


def conv_windows(view: NodeView) -> Windows:
    """Return the windows of a Conv node after checking that image, weight, bias and group fit together."""
    batch_channels, weight = view.floats(0, 4), view.floats(1, 4)
    group = view.integer("group", 1)
    channels, outputs = batch_channels[1], weight[0]
    if group < 1 or channels != weight[1] * group or outputs % group or outputs == 0:
        view.fail(
            f"has an input of {channels} channels, a weight of shape {weight} and group {group}, which do not fit"
        )
    if view.has(2) and view.floats(2) != (outputs,):
        view.fail(f"has a bias of shape {view.shape(2)} for {outputs} output channels")
    kernel = weight[2:]
    if view.integers("kernel_shape", kernel) != kernel:
        view.fail(f"has kernel_shape {view.integers('kernel_shape', kernel)[:8]}, but its weight is {kernel}")
    return resolve(view, kernel, batch_channels[2:])


def _conv(view: NodeView) -> Spec:
    size = conv_windows(view).size
    return (view.shape(0)[0], view.shape(1)[0], *size), FLOAT32


CONV = Operator(_conv)
