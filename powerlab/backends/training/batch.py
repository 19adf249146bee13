"""What a model is trained on where its speed is measured: one batch of random numbers and labels, made from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.ir.graph import Graph

LABELS = "training.labels"
"""The name under which a batch holds its labels."""
RATE = 1e-4
"""The learning rate of every optimizer: nothing is to be learnt from random numbers, and thousands of steps on one
batch must not end in a loss that is no number, as AlexNet's does at 0.01."""
_IMAGES_OF_CLASSES = (2, 4)
"""Axes of (batch, classes) and of (batch, classes, rows, columns)."""
_BOXES, _BOXES_OF_A_CELL, _NUMBERS_OF_A_BOX = 8, 3, 5
"""Objects of an image; what the maps of YOLOv3 hold beside classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a model learns.

    Attributes:
        loss: ``softmax_cross_entropy``, ``mse`` or ``yolov3``.
        shape: of its labels, of the numbers that it should give, or of its boxes.
        classes: labels are below this; 0 where they are numbers.
    """

    loss: str
    shape: tuple[int, ...]
    classes: int = 0


def target_of(graph: Graph) -> Target:
    """Return what a model learns: boxes with several outputs, classes where the output can be these, or numbers."""
    shape = graph.outputs[0].shape
    if len(graph.outputs) > 1:
        classes = max(1, shape[min(1, len(shape) - 1)] // _BOXES_OF_A_CELL - _NUMBERS_OF_A_BOX)
        return Target(loss="yolov3", shape=(shape[0], _BOXES, _NUMBERS_OF_A_BOX), classes=classes)
    if len(shape) in _IMAGES_OF_CLASSES and shape[1] > 1:
        return Target(loss="softmax_cross_entropy", shape=(shape[0], *shape[2:]), classes=shape[1])
    return Target(loss="mse", shape=shape)


def learning_output(graph: Graph) -> str:
    """Return the tensor that the loss takes: what the last softmax takes, where the loss has one of its own."""
    output = graph.outputs[0].name
    maker = graph.producers().get(output)
    softmax = maker is not None and maker.op_type == "Softmax" and target_of(graph).classes
    return maker.inputs[0] if maker is not None and softmax else output


def batch(graph: Graph, seed: int) -> dict[str, NDArray[Any]]:
    """Return the inputs that an inference has of this seed, and random labels."""
    target, random = target_of(graph), np.random.default_rng((abs(seed), 1))
    shapes = {info.name: info.shape for info in graph.inputs}
    inputs = synthetic_inputs(shapes, seed, {info.name: info.dtype for info in graph.inputs})
    if target.loss == "yolov3":
        boxes = random.uniform(0.05, 0.95, target.shape).astype(np.float32)
        boxes[..., 0] = random.integers(0, target.classes, target.shape[:2])
        return {**inputs, LABELS: boxes}
    if target.classes:
        return {**inputs, LABELS: random.integers(0, target.classes, target.shape)}
    return {**inputs, LABELS: random.standard_normal(target.shape, np.float32)}
