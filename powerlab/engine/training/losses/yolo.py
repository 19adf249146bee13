"""The loss of YOLOv3 (J. Redmon and A. Farhadi, https://arxiv.org/abs/1804.02767, section 2).

Each output is a map of a grid; a cell has three boxes of 5 + classes numbers: the centre in the cell and the size over
that of a prior, an objectness, and the classes. The prior that is most like an object takes it, in the cell that has
its centre, and others that overlap it by more than half are not asked for their objectness. Sizes are compared by their
squared error, all else by logistic regression; small objects' boxes count more, by 2 - width * height as in Darknet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Array, Graph, quoted
from powerlab.engine.ops.view import FLOAT32
from powerlab.engine.training.losses.base import Loss, Target
from powerlab.engine.training.tape import GraphTape

_BOXES = 3
"""Of a cell."""

_SIZE = 416
_TINY = ((10, 14), (23, 27), (37, 58), (81, 82), (135, 169), (344, 319))
_WHOLE = ((10, 13), (16, 30), (33, 23), (30, 61), (62, 45), (59, 119), (116, 90), (156, 198), (373, 326))
_PRIORS = {len(sizes) // _BOXES: np.array(sizes, np.float64) / _SIZE for sizes in (_TINY, _WHOLE)}
"""Outputs → widths and heights in parts of the image, small ones first; the outputs have the large ones first."""

_OVERLAP = 0.5


class _Head(Struct, frozen=True):
    """An output: where what it compares with and how much that counts go in, and its shape."""

    targets: str
    weights: str
    shape: tuple[int, ...]


def yolov3(tape: GraphTape, network: Graph) -> Loss:
    """Return the mean over the images of the sum over all boxes."""
    outputs = [info.name for info in network.outputs if info.dtype == FLOAT32]
    shapes = [tape.shape(name) for name in outputs]
    fits = all(len(shape) == 4 and shape[1] % _BOXES == 0 and shape[1] // _BOXES > 5 for shape in shapes)
    if len(outputs) not in _PRIORS or not fits or len({shape[:2] for shape in shapes}) != 1:
        raise PowerlabError(
            f"the model {quoted(network.name)} has outputs of the shapes {[list(shape) for shape in shapes][:4]}; the "
            "loss yolov3 takes two or three maps (batch, 3 x (5 + classes), rows, columns)."
        )
    batch, channels = shapes[0][:2]
    is_size = tape.floats(sizes_of_boxes(channels).reshape(1, -1, 1, 1))
    half, share = tape.floats(0.5), tape.floats(1 / batch)
    heads, values, seeds = [], [], {}
    for number, output in enumerate(outputs):
        shape = shapes[number]
        targets, weights = (tape.input(f"boxes.{what}{number}", shape) for what in ("targets", "weights"))
        head = _Head(targets, weights, shape)
        apart = tape("Sub", output, head.targets)
        squares = tape("Mul", tape("Mul", apart, apart), half)
        entropies = tape("Sub", tape("Softplus", output), tape("Mul", output, head.targets))
        of_logits = tape("Sub", tape("Sigmoid", output), head.targets)
        errors, slopes = (
            tape("Mul", tape("Add", other, tape("Mul", is_size, tape("Sub", size, other))), head.weights)
            for size, other in ((squares, entropies), (apart, of_logits))
        )
        values.append(tape("ReduceSum", errors, keepdims=0))
        seeds[output] = tape("Mul", slopes, share)
        heads.append(head)
    value = tape("Mul", tape("Sum", *values), share)
    target = Target(name="boxes", shape=(batch, -1, 5), dtype=FLOAT32, prepare=lambda boxes: _arrays(boxes, heads))
    return Loss(value, target, seeds)


def _arrays(boxes: Array, heads: Sequence[_Head]) -> Mapping[str, Array]:
    """Return what each output is compared with, and how much each number counts, by the inputs that take them."""
    pairs = yolo_maps(boxes, [head.shape[1:] for head in heads])
    return {
        name: array
        for head, pair in zip(heads, pairs, strict=True)
        for name, array in zip((head.targets, head.weights), pair, strict=True)
    }


def sizes_of_boxes(channels: int) -> NDArray[np.bool_]:
    """Say which channels of an output hold the width or the height of a box."""
    return np.isin(np.arange(channels) % (channels // _BOXES), (2, 3))


def yolo_maps(boxes: Array, shapes: Sequence[tuple[int, ...]]) -> list[tuple[Array, Array]]:
    """Return what each output is compared with, and how much each of its numbers counts.

    Args:
        boxes: (batch, boxes, 5), as a step is given them.
        shapes: of the outputs, without their batch.

    Raises:
        PowerlabError: a box is out of range.
    """
    parts = [(_BOXES, channels // _BOXES, rows, columns) for channels, rows, columns in shapes]
    priors, classes = _PRIORS[len(parts)], parts[0][1] - 5
    targets = [np.zeros((len(boxes), *sizes), np.float32) for sizes in parts]
    weights = [np.zeros_like(target) for target in targets]
    for weight in weights:
        weight[:, :, 4] = 1
    _check(boxes, classes)
    objects = [(image, *box) for image, some in enumerate(boxes) for box in some if box[0] >= 0]
    found = [_overlaps(box[4:], priors) for box in objects]
    for (image, _, x, y, *_), overlaps in zip(objects, found, strict=True):
        for prior in np.flatnonzero(overlaps > _OVERLAP):
            number, box = _place(int(prior), len(parts))
            _, _, rows, columns = parts[number]
            weights[number][image, box, 4, int(y * rows), int(x * columns)] = 0
    for (image, kind, x, y, *size), overlaps in zip(objects, found, strict=True):
        best = int(overlaps.argmax())
        number, box = _place(best, len(parts))
        _, _, rows, columns = parts[number]
        cell = (image, box, slice(None), int(y * rows), int(x * columns))
        wanted, counts = np.zeros(5 + classes), np.ones(5 + classes)
        wanted[:2] = x * columns % 1, y * rows % 1
        wanted[2:4] = np.log(np.array(size) / priors[best])
        wanted[[4, 5 + int(kind)]] = 1
        counts[:4] = 2 - size[0] * size[1]
        targets[number][cell], weights[number][cell] = wanted, counts
    return [
        (target.reshape(len(boxes), *shape), weight.reshape(len(boxes), *shape))
        for shape, target, weight in zip(shapes, targets, weights, strict=True)
    ]


def _check(boxes: Array, classes: int) -> None:
    """Raise PowerlabError where a box is none."""
    real = boxes[boxes[:, :, 0] != -1]
    kinds, centres, sizes = real[:, 0], real[:, 1:3], real[:, 3:]
    right = (kinds >= 0) & (kinds < classes) & (kinds % 1 == 0)
    right &= ((centres >= 0) & (centres < 1)).all(axis=1) & ((sizes > 0) & (sizes <= 1)).all(axis=1)
    if not right.all():
        wrong = real[~right][0].tolist()
        raise PowerlabError(
            f"the box {[round(number, 4) for number in wrong]} is out of range: its class goes from 0 to "
            f"{classes - 1}, its centre from 0 to below 1, and its width and height from above 0 to 1."
        )


def _overlaps(size: Sequence[float], priors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how much of what a box and each prior cover together both cover, their centres being the same."""
    both: NDArray[np.float64] = np.minimum(priors, size).prod(axis=1)
    return np.asarray(both / (priors.prod(axis=1) + np.prod(size) - both), np.float64)


def _place(prior: int, heads: int) -> tuple[int, int]:
    """Return the output that has a prior, and which of its boxes it is."""
    return heads - 1 - prior // _BOXES, prior % _BOXES
