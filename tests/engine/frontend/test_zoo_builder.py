"""The zoo's builder: what each method adds to the graph, and weights that keep activations in size."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import random_inputs, relative_error, run_ort

from powerlab.backends.onnx_export import export_onnx
from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.frontend.zoo import INPUT_NAME, OUTPUT_NAME
from powerlab.engine.frontend.zoo.builder import LINEAR_GAIN, RELU_GAIN, Builder
from powerlab.engine.passes import optimise


def small(seed=0):
    builder = Builder("small", seed)
    x = builder.relu6(builder.batch_norm(builder.conv(INPUT_NAME, 8, 3, 2)))
    y = builder.conv(x, 8, 3, group=8)
    y = builder.relu(builder.add(builder.batch_norm(y, scale=0.5), x))
    y = builder.lrn(builder.max_pool(y, 3, 2, 1))
    y = builder.linear(builder.flatten(builder.global_average_pool(y), 8), 5)
    return builder.build(y, (2, 3, 16, 16))


def test_a_graph_reads_like_the_calls_that_made_it():
    graph = small()
    assert [node.op_type for node in graph.nodes] == [
        *("Conv", "BatchNormalization", "Clip", "Conv", "BatchNormalization", "Add", "Relu", "MaxPool", "LRN"),
        *("GlobalAveragePool", "Flatten", "Gemm"),
    ]
    assert [(info.name, info.shape) for info in graph.inputs] == [(INPUT_NAME, (2, 3, 16, 16))]
    assert [(info.name, info.shape) for info in graph.outputs] == [(OUTPUT_NAME, (2, 5))]
    shapes = [graph.shape(node.outputs[0])[1:] for node in graph.nodes if node.op_type in {"Conv", "MaxPool"}]
    assert shapes == [(8, 8, 8), (8, 8, 8), (8, 4, 4)]


def test_it_computes_what_onnx_runtime_computes_from_its_export():
    graph = small()
    inputs = random_inputs(graph)
    assert relative_error(Session(optimise(graph)).run(inputs), run_ort(export_onnx(graph), inputs)) < 1e-4


def test_the_seed_alone_decides_the_weights():
    first, again, other = small(3), small(3), small(4)
    assert all(np.array_equal(first.constants[name], again.constants[name]) for name in first.constants)
    drawn = [name for name, value in first.constants.items() if value.size > 1]
    assert not any(np.array_equal(first.constants[name], other.constants[name]) for name in drawn)


def test_weights_have_the_variance_that_keeps_activations_in_size():
    builder = Builder("wide", 1)
    x = builder.conv(INPUT_NAME, 512, 3)
    x = builder.conv(x, 512, 3, gain=LINEAR_GAIN)
    x = builder.conv(x, 512, 3, group=32)
    graph = builder.build(x, (1, 3, 4, 4))
    variances = [float(graph.constants[node.inputs[1]].var()) for node in graph.nodes]
    fan_ins = [3 * 9, 512 * 9, 16 * 9]
    wanted = [gain / fan_in for gain, fan_in in zip((RELU_GAIN, LINEAR_GAIN, RELU_GAIN), fan_ins, strict=True)]
    np.testing.assert_allclose(variances, wanted, rtol=0.03)
    assert all(value.dtype == np.float32 for value in graph.constants.values())


@pytest.mark.parametrize(("scale", "variance"), [(1.0, 1.0), (0.25, 4.0)])
def test_a_batch_norm_gives_outputs_of_its_scale(scale, variance):
    builder = Builder("norm", 2)
    graph = builder.build(builder.batch_norm(INPUT_NAME, scale, variance), (4, 3, 64, 64))
    x = np.random.default_rng(0).normal(0, np.sqrt(variance), (4, 3, 64, 64)).astype(np.float32)
    found = Session(optimise(graph)).run({INPUT_NAME: x})[OUTPUT_NAME]
    deviations = found.std((0, 2, 3)) / scale
    assert (deviations > 0.8 / np.sqrt(1.5) * 0.98).all()  # the smallest gamma over the largest variance
    assert (deviations < 1.2 / np.sqrt(0.5) * 1.02).all()


def test_outputs_are_named_in_order_and_may_be_read():
    builder = Builder("two", 0)
    x = builder.relu(INPUT_NAME)
    z = builder.relu(x)
    graph = builder.build((z, x), (1, 3, 4, 4))
    assert [info.name for info in graph.outputs] == ["y1", "y2"]
    assert [(node.inputs, node.outputs) for node in graph.nodes] == [(("x",), ("y2",)), (("y2",), ("y1",))]
    assert [info.name for info in builder.build(z, (1, 3, 4, 4)).outputs] == ["y"]


def test_a_layer_that_does_not_fit_the_image_names_its_node():
    builder = Builder("deep", 0)
    x = builder.conv(INPUT_NAME, 4, 7, pad=0)
    with pytest.raises(PowerlabError, match="Conv node 'conv_0'"):
        builder.build(x, (1, 3, 4, 4))


def test_one_builder_makes_graphs_of_several_image_sizes():
    builder = Builder("twice", 0)
    y = builder.conv(INPUT_NAME, 4, 3)
    small_one, large_one = builder.build(y, (1, 3, 4, 4)), builder.build(y, (5, 3, 9, 7))
    assert (small_one.shape(OUTPUT_NAME), large_one.shape(OUTPUT_NAME)) == ((1, 4, 4, 4), (5, 4, 9, 7))
