"""Well-known networks with seeded random weights: the shapes and the work are real, the answers are not.

A network is one file with ``build(input_shape)`` and one line in the table.
"""

from __future__ import annotations

from collections.abc import Callable

from powerlab.engine.graph import Graph
from powerlab.engine.zoo import (
    alexnet,
    densenet121,
    densenet201,
    mobilenetv2,
    resnet18,
    resnet50,
    resnet101,
    resnet152,
    squeezenet,
    vgg16,
)
from powerlab.engine.zoo.builder import INPUT_NAME, OUTPUT_NAME

ZOO: dict[str, Callable[[tuple[int, ...]], Graph]] = {
    "alexnet": alexnet.build,
    "densenet121": densenet121.build,
    "densenet201": densenet201.build,
    "mobilenetv2": mobilenetv2.build,
    "resnet18": resnet18.build,
    "resnet50": resnet50.build,
    "resnet101": resnet101.build,
    "resnet152": resnet152.build,
    "squeezenet": squeezenet.build,
    "vgg16": vgg16.build,
}
"""Name → builder taking the shape (batch, 3, height, width) of the input ``INPUT_NAME``."""

__all__ = ["INPUT_NAME", "OUTPUT_NAME", "ZOO"]
