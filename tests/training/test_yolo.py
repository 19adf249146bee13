"""The loss of YOLOv3 against its definition, cell by cell, and a network that learns from boxes."""

from __future__ import annotations

import numpy as np
import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph, Node, TensorInfo
from powerlab.engine.ir.shapes import infer
from powerlab.engine.training import TrainingSession
from training.numeric import evaluated

CLASSES, BATCH, SIZE = 2, 2, 64
TINY = np.array([(10, 14), (23, 27), (37, 58), (81, 82), (135, 169), (344, 319)]) / 416

BOXES = np.array(
    [
        [[1, 0.3, 0.7, 0.3, 0.35], [0, 0.9, 0.1, 0.06, 0.07], [-1, 0, 0, 0, 0]],
        [[0, 0.55, 0.5, 0.7, 0.9], [-1, 0, 0, 0, 0], [-1, 0, 0, 0, 0]],
    ],
    np.float32,
)


def detector() -> Graph:
    """Return a network of two convolutions, one an output: grids of 2 × 2 and 4 × 4 cells."""
    random, channels = np.random.default_rng(2), 3 * (5 + CLASSES)
    constants = {
        "w1": random.standard_normal((channels, 3, 32, 32)).astype(np.float32) / 50,
        "w2": random.standard_normal((channels, 3, 16, 16)).astype(np.float32) / 25,
    }
    nodes = [
        Node("Conv", "coarse", ("x", "w1"), ("y1",), {"strides": (32, 32)}),
        Node("Conv", "fine", ("x", "w2"), ("y2",), {"strides": (16, 16)}),
    ]
    return infer("detector", nodes, [TensorInfo("x", (BATCH, 3, SIZE, SIZE))], ["y1", "y2"], constants)


def entropy(logit: float, wanted: float) -> float:
    return float(np.logaddexp(0, logit) - logit * wanted)


def by_definition(outputs: list[np.ndarray]) -> float:
    """Return the loss, box by box."""
    total = 0.0
    for image in range(BATCH):
        asked = {(head, cell) for head in (0, 1) for cell in np.ndindex(3, *outputs[head].shape[2:])}
        owners = {}
        for kind, x, y, width, height in (box for box in BOXES[image].astype(np.float64) if box[0] >= 0):
            both = np.minimum(TINY, (width, height)).prod(axis=1)
            overlaps = both / (TINY.prod(axis=1) + width * height - both)
            for prior in range(6):
                head = 0 if prior >= 3 else 1
                cells = outputs[head].shape[2]
                place = (head, (prior % 3, int(y * cells), int(x * cells)))
                if overlaps[prior] > 0.5:
                    asked.discard(place)
                if prior == overlaps.argmax():
                    owners[place] = (kind, x * cells % 1, y * cells % 1, width, height, TINY[prior])
        for head, (box, row, column) in asked | set(owners):
            numbers = outputs[head][image].reshape(3, 5 + CLASSES, *outputs[head].shape[2:])[box, :, row, column]
            owner = owners.get((head, (box, row, column)))
            total += entropy(numbers[4], owner is not None)
            if owner:
                kind, x, y, width, height, prior = owner
                errors = entropy(numbers[0], x) + entropy(numbers[1], y)
                errors += 0.5 * np.sum((numbers[2:4] - np.log(np.array((width, height)) / prior)) ** 2)
                total += (2 - width * height) * errors
                total += sum(entropy(numbers[5 + one], one == kind) for one in range(CLASSES))
    return total / BATCH


def test_loss_and_gradients_are_those_of_the_definition():
    graph, random = detector(), np.random.default_rng(3)
    x = random.standard_normal((BATCH, 3, SIZE, SIZE)).astype(np.float32)
    session = TrainingSession(graph, "yolov3", threads=1)
    loss, gradients = session.step(x, BOXES), session.gradients()

    def at(**moved: np.ndarray) -> float:
        values = evaluated(graph, {"x": x, **moved})
        return by_definition([values["y1"], values["y2"]])

    assert loss == pytest.approx(at(), rel=1e-5)
    for name, gradient in gradients.items():
        way = random.standard_normal(gradient.shape)
        start = graph.constants[name].astype(np.float64)
        slope = (at(**{name: start + 1e-5 * way}) - at(**{name: start - 1e-5 * way})) / 2e-5
        assert float(np.sum(gradient * way)) == pytest.approx(slope, rel=1e-3), name


def test_bad_boxes_are_told():
    session = TrainingSession(detector(), "yolov3", threads=1)
    x = np.zeros((BATCH, 3, SIZE, SIZE), np.float32)
    for at, value in ((0, CLASSES), (1, 1.0), (3, 0.0)):
        boxes = BOXES.copy()
        boxes[0, 0, at] = value
        with pytest.raises(PowerlabError, match=r"the box \[.*\] is out of range: its class goes from 0 to 1"):
            session.step(x, boxes)
    graph = detector()
    one = infer("one", graph.nodes[:1], graph.inputs, ["y1"], dict(graph.constants))
    with pytest.raises(PowerlabError, match="takes two or three maps"):
        TrainingSession(one, "yolov3", threads=1)


def test_yolov3_tiny_learns_from_boxes():
    session = TrainingSession("yolov3-tiny@64", "yolov3", "adam", batch_size=2, threads=1)
    x = np.random.default_rng(3).standard_normal((2, 3, 64, 64)).astype(np.float32)
    losses = [session.step(x, BOXES) for _ in range(5)]
    assert losses[-1] < 0.5 * losses[0]
