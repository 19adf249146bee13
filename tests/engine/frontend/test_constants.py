"""Large constants are recipes: made when they are asked for, the same every time, and once for a session."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from engine_models import onnx_bytes
from onnx import helper

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.zoo.builder import Builder
from powerlab.engine.ir.constants import LARGE_ELEMENTS, Constants, Recipe, derived, value_of
from powerlab.engine.passes import optimise
from powerlab.engine.runtime.memory import weight_bytes

CHANNELS = 160
"""A 3 x 3 convolution of so many has large weights, and two of them make a file that is mapped."""


@pytest.fixture
def made(monkeypatch):
    """Count what recipes make, by shape."""
    counts = Counter()
    plain = Recipe.make

    def counted(self):
        counts[self.shape] += 1
        return plain.__get__(self)

    monkeypatch.setattr(Recipe, "make", property(counted))
    return counts


def recipe(values):
    return Recipe(shape=values.shape, dtype=values.dtype, make=values.copy)


def network(convolutions=6):
    net = Builder("test", 5)
    x = net.conv("x", CHANNELS, 1)
    for _ in range(convolutions):
        x = net.relu(net.batch_norm(net.conv(x, CHANNELS, 3)))
    return net.build(net.linear(net.flatten(net.global_average_pool(x), CHANNELS), 7), (1, 3, 6, 6))


def model_file(tmp_path, external=False):
    graph = network()
    nodes = [helper.make_node(n.op_type, n.inputs, n.outputs, n.name, **n.attributes) for n in graph.nodes]
    data = onnx_bytes(nodes, {"x": (1, 3, 6, 6)}, constants=dict(graph.constants))
    path = tmp_path / "model.onnx"
    if external:
        onnx.save(onnx.load_from_string(data), path, save_as_external_data=True, location="weights.bin")
    else:
        path.write_bytes(data)
    return path


def test_a_value_with_a_recipe_is_made_at_every_look_up_and_only_then():
    calls = []
    values = np.arange(6.0).reshape(2, 3)
    counted = Recipe(shape=(2, 3), dtype=values.dtype, make=lambda: calls.append(1) or values)
    constants = Constants({"w": counted, "b": values})
    assert "w" in constants
    assert set(constants) == {"w", "b"}
    assert (len(constants), constants.kept["w"].size) == (2, 6)
    assert calls == []
    np.testing.assert_array_equal(constants["w"], values)
    assert constants["b"] is values
    assert len(calls) == 1
    np.testing.assert_array_equal(constants["w"], values)
    assert len(calls) == 2
    assert Constants(constants).kept is constants.kept


def test_what_is_derived_from_a_recipe_is_a_recipe():
    values = np.arange(6.0).reshape(2, 3)
    assert derived(values, (3, 2), np.transpose).shape == (3, 2)
    later = derived(derived(recipe(values), (3, 2), np.transpose), (3, 2), np.negative)
    assert isinstance(later, Recipe)
    assert (later.shape, later.dtype) == ((3, 2), values.dtype)
    np.testing.assert_array_equal(value_of(later), -values.T)


@pytest.mark.parametrize("before", [0, 1, 2])
def test_weights_drawn_later_are_those_that_would_have_been_drawn_at_once(before):
    """One, two or three numbers are drawn before: half a 64-bit number may be left over, and is used."""
    shapes = [*[(1,)] * before, (LARGE_ELEMENTS + 1, 1), (3,), (LARGE_ELEMENTS, 3), (LARGE_ELEMENTS + 7,), (5,)]
    net, plain = Builder("test", 9), np.random.Generator(np.random.PCG64(9))
    drawn = [net._uniform(shape, -1.0, 2.0) for shape in shapes]
    expected = [plain.random(shape, dtype=np.float32) * np.float32(3.0) + np.float32(-1.0) for shape in shapes]
    for values, right in reversed(list(zip(drawn, expected, strict=True))):
        assert isinstance(values, Recipe) == (right.size >= LARGE_ELEMENTS)
        np.testing.assert_array_equal(value_of(values), right)
        np.testing.assert_array_equal(value_of(values), right)


def test_passes_make_no_large_constant_and_a_session_each_of_them_once(made):
    graph = network()
    optimised = optimise(graph)
    assert weight_bytes(optimised) > 4 * 6 * 9 * CHANNELS**2
    assert not made
    Session(optimised, threads=2)
    assert made[CHANNELS, CHANNELS, 3, 3] == 2 * 6  # drawn, and multiplied by the scale of its batch norm
    assert max(made.values()) == 2 * 6


def test_batch_norms_are_folded_into_weights_drawn_later():
    graph = network(1)
    optimised = optimise(graph)
    folded = optimised.constants[optimised.nodes[1].inputs[1]]
    variance = graph.constants["variance_2"].astype(np.float64)
    scale = graph.constants["gamma_2"] / np.sqrt(variance + 1e-5)
    np.testing.assert_allclose(folded, graph.constants["weight_1"] * scale[:, None, None, None], rtol=1e-6)


@pytest.mark.parametrize("external", [False, True], ids=["inside", "beside"])
def test_large_weights_of_a_file_are_read_when_they_are_packed(tmp_path, made, external):
    path = model_file(tmp_path, external)
    made.clear()
    graph = load_graph(path)
    large = {name: value for name, value in graph.kept_constants.items() if isinstance(value, Recipe)}
    assert len(large) >= 6
    assert not made
    expected = network().constants
    assert all(np.array_equal(graph.constants[name], expected[name]) for name in graph.constants)
    x = np.random.default_rng(2).standard_normal((1, 3, 6, 6), dtype=np.float32)
    found = [Session(each).run({"x": x})["y"] for each in (path, optimise(graph), optimise(network()))]
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


@pytest.mark.parametrize("external", [False, True], ids=["inside", "beside"])
def test_a_file_that_was_changed_since_is_told(tmp_path, external):
    path = model_file(tmp_path, external)
    graph = optimise(load_graph(path))
    changed = tmp_path / "weights.bin" if external else path
    changed.write_bytes(changed.read_bytes() + b"\0")
    with pytest.raises(PowerlabError, match=r"was changed while the model was loaded; load it again"):
        Session(graph)
    changed.unlink()
    with pytest.raises(PowerlabError, match=r"cannot be read: No such file"):
        Session(graph)
