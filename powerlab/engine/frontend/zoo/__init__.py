"""Well-known networks with seeded random weights: the shapes and the work are real, the answers are not.

A network is one file with ``build(input_shape)`` and one line in the table.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from powerlab.engine.frontend.zoo import (
    alexnet,
    densenet121,
    densenet201,
    efficientnet_b0,
    fcn5,
    lstm2,
    mobilenetv2,
    mobilenetv3,
    resnet18,
    resnet50,
    resnet101,
    resnet152,
    squeezenet,
    vgg16,
    vit_tiny,
    yolov3,
    yolov3_tiny,
)
from powerlab.engine.frontend.zoo.builder import INPUT_NAME, OUTPUT_NAME
from powerlab.engine.ir.graph import Graph


class ZooModel(Struct, frozen=True):
    """A network.

    Attributes:
        build: takes the shape of the input ``INPUT_NAME``, the batch in front.
        input_shape: the usual one, without the batch.
    """

    build: Callable[[tuple[int, ...]], Graph]
    input_shape: tuple[int, ...] = (3, 224, 224)


ZOO: dict[str, ZooModel] = {
    "alexnet": ZooModel(alexnet.build),
    "densenet121": ZooModel(densenet121.build),
    "densenet201": ZooModel(densenet201.build),
    "efficientnet-b0": ZooModel(efficientnet_b0.build),
    "fcn5": ZooModel(fcn5.build, (fcn5.FEATURES,)),
    "lstm2": ZooModel(lstm2.build, (lstm2.STEPS, lstm2.FEATURES)),
    "mobilenetv2": ZooModel(mobilenetv2.build),
    "mobilenetv3": ZooModel(mobilenetv3.build),
    "resnet18": ZooModel(resnet18.build),
    "resnet50": ZooModel(resnet50.build),
    "resnet101": ZooModel(resnet101.build),
    "resnet152": ZooModel(resnet152.build),
    "squeezenet": ZooModel(squeezenet.build),
    "vgg16": ZooModel(vgg16.build),
    "vit-tiny": ZooModel(vit_tiny.build),
    "yolov3": ZooModel(yolov3.build, (3, 416, 416)),
    "yolov3-tiny": ZooModel(yolov3_tiny.build, (3, 416, 416)),
}

__all__ = ["INPUT_NAME", "OUTPUT_NAME", "ZOO", "ZooModel"]
