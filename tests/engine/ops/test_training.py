"""Models that were exported while they train: batch statistics, and Dropout that drops."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes
from general_models import model_bytes, node_bytes, run_engine
from onnx import helper

from powerlab.domain.errors import PowerlabError

GENERATOR = np.random.default_rng(3)
X = GENERATOR.standard_normal((4, 3, 5, 6), dtype=np.float32)
NORM = {name: GENERATOR.random(3).astype(np.float32) + 1 for name in ("scale", "bias", "mean", "variance")}
TRUE, RATIO = np.asarray(True), np.float32(0.4)


@pytest.mark.parametrize("outputs", [("y",), ("y", "m", "v"), ("y", "", "v")])
@pytest.mark.parametrize("momentum", [0.9, 0.25])
def test_a_batch_norm_that_trains_normalises_by_the_batch(outputs, momentum):
    node = helper.make_node(
        "BatchNormalization", ["x", *NORM], list(outputs), "n", training_mode=1, momentum=momentum, epsilon=1e-3
    )
    data = model_bytes([node], {"x": X}, tuple(filter(None, outputs)), constants=NORM, opset=15)
    found = run_engine(data, {"x": X})
    axes = (0, 2, 3)
    mean, variance = X.mean(axes), X.var(axes)
    column = (1, 3, 1, 1)
    apart = (X - mean.reshape(column)) / np.sqrt(variance.reshape(column) + 1e-3)
    expected = {
        "y": apart * NORM["scale"].reshape(column) + NORM["bias"].reshape(column),
        "m": NORM["mean"] * momentum + mean * (1 - momentum),
        "v": NORM["variance"] * momentum + variance * (1 - momentum),
    }
    assert found.keys() == set(filter(None, outputs))
    for name, value in found.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-5, err_msg=name)


def dropout(**more):
    return node_bytes("Dropout", {"x": X}, order=["x", "r", "t"], constants={"r": RATIO, "t": TRUE}, **more)


def test_a_dropout_with_a_seed_drops_what_it_says():
    found = run_engine(dropout(outputs=("y", "kept"), seed=7), {"x": X})
    kept = found["kept"]
    assert kept.dtype == np.bool_
    assert 0.4 < kept.mean() < 0.8
    np.testing.assert_allclose(found["y"], np.where(kept, X / np.float32(0.6), 0), rtol=1e-6)


def test_a_dropout_of_constants_is_folded():
    data = node_bytes(
        "Dropout", {"x": X}, order=["c", "r", "t"], constants={"c": X, "r": RATIO, "t": TRUE}, outputs=("d",), seed=7
    )
    assert load_bytes(data).shape("d") == X.shape


def test_a_dropout_that_infers_keeps_everything_and_says_so():
    found = run_engine(node_bytes("Dropout", {"x": X}, outputs=("y", "kept"), opset=13), {"x": X})
    np.testing.assert_array_equal(found["y"], X)
    assert found["kept"].all()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (dropout, "Dropout node 'n' draws other numbers in every run"),
        (
            lambda: node_bytes(
                "Dropout", {"x": X}, order=["x", "r", "t"], constants={"r": np.float32(1), "t": TRUE}, seed=1
            ),
            "drops 1.0 of its input",
        ),
        (
            lambda: node_bytes(
                "Dropout", {"x": X}, order=["x", "r", "t"], constants={"r": np.float32("nan"), "t": TRUE}, seed=1
            ),
            "drops nan of its input",
        ),
        (
            lambda: node_bytes(
                "Dropout", {"x": X}, order=["x", "r", "t"], constants={"r": np.zeros(2, np.float32), "t": TRUE}, seed=1
            ),
            "needs one ratio, but it has 2",
        ),
    ],
)
def test_what_cannot_be_repeated_is_refused(make, sentence):
    with pytest.raises(PowerlabError, match=sentence):
        load_bytes(make())
