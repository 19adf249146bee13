"""Pools of windows and of whole images."""

from __future__ import annotations

from powerlab.engine.ir.graph import TensorInfo
from powerlab.engine.ops.base import Operator
from powerlab.engine.ops.convolution import image_shape
from powerlab.engine.ops.view import FLOAT32, INT64, NodeView, Spec
from powerlab.engine.ops.windows import Windows, resolve, steps


def pool_windows(view: NodeView) -> Windows:
    """Return the windows of a pooling node, each of which holds at least one pixel of the image."""
    image = image_shape(view)[2:]
    if not view.has_attribute("kernel_shape"):
        view.fail("lacks the attribute kernel_shape")
    windows = resolve(view, view.integers("kernel_shape", ()), image)
    reach = [(size - 1) * step + 1 for size, step in zip(windows.kernel, windows.dilations, strict=True)]
    if any(pad >= reach[axis % len(reach)] for axis, pad in enumerate(windows.pads_given)):
        view.fail(f"has pads {windows.pads_given} as large as its window {windows.kernel}")
    return windows


def _pool(view: NodeView) -> Spec:
    return (*view.shape(0)[:2], *pool_windows(view).size), FLOAT32


def as_floats(view: NodeView) -> NodeView:
    """Return the view of a pool of bytes as one of floats, which pools the same."""
    dtype = view.dtype(0)
    if dtype.kind not in "iu" or dtype.itemsize > 1:
        return view
    return NodeView(view.node, (TensorInfo(view.node.inputs[0], view.shape(0)), *view.infos[1:]), view.values)


def _max_pool(view: NodeView) -> Spec:
    return _pool(as_floats(view))[0], view.dtype(0)


def _global_pool(view: NodeView) -> Spec:
    images, channels, *pixels = image_shape(view)
    return (images, channels, *(1,) * len(pixels)), FLOAT32


def lp_power(view: NodeView) -> int:
    """Return the p of an Lp norm."""
    power = view.integer("p", 2)
    if power < 1:
        view.fail(f"has p {power}; it must be 1 or more")
    return power


def _lp_pool(view: NodeView) -> Spec:
    lp_power(view)
    return _pool(view)


def _global_lp_pool(view: NodeView) -> Spec:
    lp_power(view)
    return _global_pool(view)


def _places(view: NodeView) -> tuple[Spec, ...]:
    """Return Indices of a MaxPool: where each maximum stood."""
    return ((_pool(as_floats(view))[0], INT64),)


def unpooled_size(view: NodeView) -> tuple[int, ...]:
    """Return the sizes of the image of which a MaxUnpool's input was pooled, by its windows."""
    image = image_shape(view)[2:]
    axes = len(image)
    if not view.has_attribute("kernel_shape"):
        view.fail("lacks the attribute kernel_shape")
    kernel = steps(view, "kernel_shape", view.integers("kernel_shape", ()), axes, 1)
    strides = steps(view, "strides", view.integers("strides", (1,) * axes), axes, 1)
    pads = steps(view, "pads", view.integers("pads", (0,) * (2 * axes)), 2 * axes, 0)
    size = tuple(
        (length - 1) * strides[axis] + kernel[axis] - pads[axis] - pads[axis + axes]
        for axis, length in enumerate(image)
    )
    if min(size) < 1 or axes > 3:
        view.fail(f"makes an image of the sizes {size[:8]}")
    return size


def _max_unpool(view: NodeView) -> Spec:
    shape = image_shape(view)
    if view.shape(1) != shape or view.dtype(1).kind != "i":
        view.fail(f"has places of the shape {view.shape(1)} and type {view.dtype(1)} for values of the shape {shape}")
    size = unpooled_size(view)
    wanted = view.int_values(2) if view.has(2) else (*shape[:2], *size)
    if (
        wanted[:2] != shape[:2]
        or len(wanted) != len(shape)
        or any(w < s for w, s in zip(wanted[2:], size, strict=True))
    ):
        view.fail(f"has the output shape {wanted[:8]}, which does not hold an image of the sizes {size}")
    return wanted, FLOAT32


POOL = Operator(_pool)
MAX_POOL = Operator(_max_pool, infer_more=_places)
MAX_UNPOOL = Operator(_max_unpool)
LP_POOL = Operator(_lp_pool)
GLOBAL_POOL = Operator(_global_pool)
GLOBAL_LP_POOL = Operator(_global_lp_pool)
