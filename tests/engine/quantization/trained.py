"""A network that is trained in a second on pictures made by code, and how often it is right.

The pictures are of ten glyphs of seven segments, moved, faded and noisy. The network is random convolutions whose
readout is fitted by ridge regression, which is training enough to be right nearly always.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper
from quantized_models import model_bytes

SEGMENTS = ("abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg")
PLACES = {
    "a": (slice(1, 2), slice(2, 6)),
    "b": (slice(2, 6), slice(6, 7)),
    "c": (slice(6, 10), slice(6, 7)),
    "d": (slice(10, 11), slice(2, 6)),
    "e": (slice(6, 10), slice(1, 2)),
    "f": (slice(2, 6), slice(1, 2)),
    "g": (slice(5, 6), slice(2, 6)),
}
SIZE = 14


def pictures(count, seed):
    """Return pictures (count, 1, 14, 14) in float32, and which glyph each shows."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 10, count)
    images = np.zeros((count, 1, SIZE, SIZE), np.float32)
    for image, label in zip(images, labels, strict=True):
        down, right = generator.integers(0, 2), generator.integers(3, 5)
        for segment in SEGMENTS[label]:
            rows, columns = PLACES[segment]
            image[0, down:, right:][rows, columns] = generator.uniform(0.5, 1.0)
    return images + generator.normal(0, 0.1, images.shape).astype(np.float32), labels


def _nodes():
    return [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "w2", "b2"], ["c2"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"]),
        helper.make_node("Flatten", ["r2"], ["f"]),
    ]


def model(constants, batch, nodes, output):
    float32 = TensorProto.FLOAT
    return model_bytes(nodes, {"x": (float32, (batch, 1, SIZE, SIZE))}, {output: (float32, None)}, constants, opset=17)


def trained_network(session_of, batch=50):
    """Return the bytes of a trained model for batches of 50; ``session_of`` runs the bytes of a model."""
    generator = np.random.default_rng(3)
    constants = {
        "w1": generator.normal(0, 0.5, (12, 1, 3, 3)).astype(np.float32),
        "b1": generator.uniform(-0.5, 0.5, 12).astype(np.float32),
        "w2": generator.normal(0, 0.2, (16, 12, 3, 3)).astype(np.float32),
        "b2": generator.uniform(-0.5, 0.5, 16).astype(np.float32),
    }
    images, labels = pictures(4000, 1)
    session = session_of(model(constants, batch, _nodes(), "f"))
    features = np.concatenate([session.run({"x": part})["f"] for part in np.split(images, len(images) // batch)])
    design = np.c_[features, np.ones(len(features))].astype(np.float64)
    ridge = 50.0 * np.eye(design.shape[1])
    readout = np.linalg.solve(design.T @ design + ridge, design.T @ np.eye(10)[labels]).astype(np.float32)
    constants |= {"w3": readout[:-1].copy(), "b3": readout[-1].copy()}
    return model(constants, batch, [*_nodes(), helper.make_node("Gemm", ["f", "w3", "b3"], ["y"])], "y")


def answers_of(session, images, batch=50):
    return np.concatenate([session.run({"x": part})["y"] for part in np.split(images, len(images) // batch)])
