"""Weights that several layers of a network have in common are in memory once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from engine_models import onnx_bytes, run_ort
from onnx import helper

from powerlab.domain.errors import TooLargeError
from powerlab.engine import Session
from powerlab.engine.codegen import builder
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.ir.constants import LARGE_ELEMENTS
from powerlab.engine.passes import optimise
from powerlab.engine.prepared import codec
from powerlab.engine.prepared.prepared import Prepared, prepare
from powerlab.engine.target.tiers import choose_tier

ROUNDS = 3
RANDOM = np.random.default_rng(5)


def drawn(*shape: int) -> np.ndarray:
    return (RANDOM.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def conv(**attributes):
    return lambda x, w, y: [helper.make_node("Conv", [x, w], [y], **attributes)]


def normalised_conv(x, w, y):
    return [
        helper.make_node("Conv", [x, w], [f"{y}.sums"], pads=[1] * 4),
        helper.make_node("BatchNormalization", [f"{y}.sums", *("scale", "shift", "mean", "variance")], [y]),
    ]


def lstm(x, w, y):
    return [
        helper.make_node("LSTM", [x, w, "r"], [f"{y}.all"], hidden_size=64),
        helper.make_node("Squeeze", [f"{y}.all", "one"], [y]),
    ]


def product(x, w, y):
    return [helper.make_node("MatMul", [x, w], [y])]


LAYERS = {
    "3x3": (conv(pads=[1] * 4), (1, 64, 9, 9), (64, 64, 3, 3)),
    "1x1": (conv(), (1, 192, 7, 7), (192, 192, 1, 1)),
    "groups": (conv(pads=[1] * 4, group=2), (1, 128, 5, 5), (128, 64, 3, 3)),
    "small groups": (conv(pads=[1] * 4, group=24), (1, 288, 5, 5), (288, 12, 3, 3)),
    "dilated past the image": (conv(pads=[8] * 4, dilations=[8, 8]), (1, 128, 7, 7), (128, 128, 3, 3)),
    "batch norm": (normalised_conv, (1, 64, 8, 8), (64, 64, 3, 3)),
    "volumes": (conv(pads=[1] * 6), (1, 32, 4, 6, 6), (32, 32, 3, 3, 3)),
    "product": (product, (5, 192), (192, 192)),
    "LSTM": (lstm, (4, 2, 64), (1, 256, 64)),
}
CONSTANTS = {
    "scale": np.abs(drawn(64)) + 0.5,
    "shift": drawn(64),
    "mean": drawn(64),
    "variance": np.abs(drawn(64)) + 0.5,
    "r": drawn(1, 256, 64),
    "one": np.array([1]),
}


def network(name: str, *, alike: bool) -> tuple[bytes, np.ndarray]:
    """Return a layer after itself; ``alike``: with the weights it had, otherwise with a copy under another name."""
    layer, x, w = LAYERS[name]
    weights = drawn(*w)
    names = ["w"] * ROUNDS if alike else [f"w{number}" for number in range(ROUNDS)]
    nodes = []
    for number, own in enumerate(names):
        before, after = ("x" if number == 0 else f"y{number}", f"y{number + 1}" if number < ROUNDS - 1 else "y")
        nodes += layer(before, own, f"{after}.linear")
        nodes.append(helper.make_node("Relu", [f"{after}.linear"], [after]))
    used = {value for node in nodes for value in node.input}
    constants = {key: value for key, value in CONSTANTS.items() if key in used} | dict.fromkeys(names, weights)
    return onnx_bytes(nodes, {"x": x}, constants=constants), drawn(*x)


@pytest.fixture
def lowered(tmp_path):
    """What a file becomes, from which weights are read when they are packed."""

    def lower(data: bytes, threads: int = 2) -> Prepared:
        path = tmp_path / "model.onnx"
        path.write_bytes(data)
        return prepare(optimise(load_graph(path)), choose_tier(), threads)

    return lower


def large_weights(prepared: Prepared) -> list[int]:
    """Return which arrays the steps have that are as large as a layer's weights."""
    weights = [step.weights for step in prepared.program.steps]
    return [id(one) for one in weights if one is not None and one.size >= LARGE_ELEMENTS]


def check(folder: Path, data: bytes, x: np.ndarray) -> None:
    """Compare the engine with ONNX Runtime."""
    path = folder / "checked.onnx"
    path.write_bytes(data)
    found = Session(path, threads=2).run({"x": x})["y"]
    np.testing.assert_allclose(found, run_ort(data, {"x": x})["y"], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_with_the_same_weights_have_them_in_memory_once(lowered, name, threads):
    together, apart = (large_weights(lowered(network(name, alike=alike)[0], threads)) for alike in (True, False))
    assert len(together) == len(apart) >= ROUNDS
    assert len(set(apart)) >= ROUNDS
    assert len(set(together)) == len(together) // ROUNDS


@pytest.mark.parametrize("name", LAYERS)
def test_they_compute_what_layers_with_weights_of_their_own_do(tmp_path, name):
    RANDOM.bit_generator.state = np.random.default_rng(6).bit_generator.state
    data, x = network(name, alike=True)
    check(tmp_path, data, x)


def test_weights_that_are_scaled_otherwise_are_others(lowered, tmp_path):
    nodes = [*normalised_conv("x", "w", "y1"), helper.make_node("Relu", ["y1"], ["y2"])]
    nodes += [helper.make_node("Conv", ["y2", "w"], ["y"], pads=[1] * 4)]
    constants = {key: CONSTANTS[key] for key in ("scale", "shift", "mean", "variance")} | {"w": drawn(64, 64, 3, 3)}
    data = onnx_bytes(nodes, {"x": (1, 64, 8, 8)}, constants=constants)
    assert len(set(large_weights(lowered(data)))) == 2
    check(tmp_path, data, drawn(1, 64, 8, 8))


def test_a_prepared_model_is_kept_with_them_once(lowered):
    together, apart = (lowered(network("product", alike=alike)[0]) for alike in (True, False))
    files = [b"".join(bytes(part) for part in codec.parts("key", one)) for one in (together, apart)]
    weights = next(step.weights for step in apart.program.steps if step.weights is not None)
    assert len(files[1]) - len(files[0]) >= (ROUNDS - 1) * weights.nbytes
    for file, prepared in zip(files, (together, apart), strict=True):
        read = codec.read(memoryview(bytes(codec.HEAD_BYTES) + file), "key")
        assert len(set(large_weights(read))) == len(set(large_weights(prepared)))
        for mine, theirs in zip(read.program.steps, prepared.program.steps, strict=True):
            np.testing.assert_array_equal(mine.weights, theirs.weights)


def test_weights_that_are_there_once_are_counted_once(monkeypatch, lowered):
    data = network("product", alike=True)[0]
    weights = 192 * 192 * 4
    monkeypatch.setattr(builder, "ALWAYS_THERE_BYTES", 0)
    monkeypatch.setattr(builder, "available_bytes", lambda: 2 * weights)
    assert len(set(large_weights(lowered(data)))) == 1
    with pytest.raises(TooLargeError, match="larger than the memory there is"):
        lowered(network("product", alike=False)[0])
