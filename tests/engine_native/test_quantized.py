"""Quantized networks computed in bytes: bit for bit what their integers mean, in every tier."""

import numpy as np
import pytest

from engine_native.graphs import run_twice
from engine_native.quantized_graphs import Quantized
from powerlab.engine import Session
from powerlab.engine.codegen.image_loop import looped_nodes
from powerlab.engine.passes import optimise
from powerlab.engine.target.tiers import TIER_VARIABLE, available_tiers


def operators(graph):
    return [node.op_type for node in optimise(graph).nodes]


def check(net, *outputs, threads=(1, 2, 3)):
    graph = optimise(net.graph(*outputs))
    for count in threads:
        found = run_twice(graph, threads=count, **net.fed())
        for name in outputs:
            np.testing.assert_array_equal(found[name], net.values[name])


def test_a_residual_network_runs_in_bytes_from_end_to_end(tier):
    net = Quantized()
    x = net.conv(net.input(2, 3, 21, 19), 40, (7, 7), strides=(2, 2), pads=(3, 3, 3, 3), relu=True)
    x = net.max_pool(x, (3, 3), (2, 2), (1, 1, 1, 1))
    y = net.conv(x, 24, (1, 1), relu=True)
    y = net.conv(y, 24, (3, 3), pads=(1, 1, 1, 1), relu=True)
    y = net.conv(y, 40, (1, 1), residual=x, relu=True)
    out = net.gemm(net.flatten(net.global_average(y)), 21)
    kinds = operators(net.graph(out))
    assert sorted(set(kinds)) == ["QuantConv", "QuantPool", "QuantView", "Quantize"]
    check(net, out)


def test_depthwise_and_grouped_convolutions(tier):
    net = Quantized(1)
    x = net.conv(net.input(1, 20, 11, 13), 44, (1, 1), relu=True)
    x = net.conv(x, 44, (3, 3), pads=(1, 1, 1, 1), group=44, relu=True)
    x = net.conv(x, 44, (5, 5), strides=(2, 2), pads=(2, 2, 2, 2), group=44)
    x = net.conv(x, 64, (1, 1))
    x = net.conv(x, 96, (3, 3), pads=(1, 1, 1, 1), group=4, dilations=(1, 1))
    out = net.floats(net.add(x, net.conv(x, 96, (1, 1)), relu=True))
    assert set(operators(net.graph(out))) == {"Dequantize", "QuantConv", "Quantize"}
    check(net, out)


@pytest.mark.parametrize(("outputs", "kernel", "group"), [(48, 5, 48), (24, 3, 1)])
def test_one_pixel_is_quantized_with_zeros_around_it(tier, outputs, kernel, group):
    """As in the last blocks of EfficientNet and MobileNetV3 at small sizes."""
    net = Quantized(6)
    x = net.input(3, 48, 1, 1)
    check(net, net.floats(net.conv(x, outputs, (kernel, kernel), pads=(kernel // 2,) * 4, group=group)))


def test_signed_activations_mean_the_same(tier):
    net = Quantized(2, np.int8)
    x = net.conv(net.input(1, 5, 9, 8), 33, (3, 3), pads=(1, 1, 1, 1))
    out = net.floats(net.conv(x, 18, (2, 2), strides=(2, 2)))
    check(net, out)


def test_a_last_layer_stays_floats(tier):
    net = Quantized(3)
    out = net.conv(net.input(1, 16, 6, 6), 30, (3, 3), pads=(1, 1, 1, 1), quantized=False)
    assert operators(net.graph(out)) == ["Quantize", "QuantConv"]
    check(net, out)


def test_what_has_no_kernel_stays_on_floats():
    net = Quantized(4)
    x = net.conv(net.input(1, 16, 6, 6), 32, (1, 1))
    made = net.node("Softmax", (net.dequantize(x),), (1, 32, 6, 6))
    y = net.quantize(made, 1 / 256, 0, np.zeros((1, 32, 6, 6)))
    out = net.conv(y, 8, (1, 1), quantized=False)
    kinds = operators(net.graph(out))
    assert kinds.count("QuantConv") == 2
    assert "Dequantize" in kinds
    found = Session(optimise(net.graph(out))).run(net.fed())[out]
    assert np.all(np.isfinite(found))


@pytest.mark.parametrize("least", [-128, -127])
def test_weights_of_minus_128_stay_on_floats(least):
    net = Quantized(5)
    out = net.conv(net.input(1, 16, 4, 4), 16, (1, 1), quantized=False)
    weights = next(value for value in net.constants.values() if value.dtype == np.int8 and value.ndim == 4)
    weights[0, 0, 0, 0] = least
    assert ("QuantConv" in operators(net.graph(out))) == (least == -127)


def test_a_batch_on_two_threads_is_the_same():
    net = Quantized(6)
    x = net.conv(net.input(4, 3, 12, 12), 16, (3, 3), pads=(1, 1, 1, 1), relu=True)
    out = net.floats(net.conv(x, 16, (3, 3), pads=(1, 1, 1, 1), relu=True))
    found = Session(optimise(net.graph(out)), threads=2).run(net.fed())[out]
    np.testing.assert_array_equal(found, net.values[out])


def test_a_batch_goes_image_by_image_where_it_fits_no_cache():
    net = Quantized(7)
    x = net.conv(net.input(2, 3, 200, 200), 64, (3, 3), pads=(1, 1, 1, 1), relu=True)
    out = net.conv(net.max_pool(x, (2, 2), (2, 2), (0, 0, 0, 0)), 8, (1, 1), quantized=False)
    graph = optimise(net.graph(out))
    assert looped_nodes(graph) > 1
    for threads in (1, 2):
        found = run_twice(graph, threads=threads, **net.fed())
        np.testing.assert_array_equal(found[out], net.values[out])


@pytest.mark.parametrize("tier", [tier for tier in available_tiers() if tier.widens_bytes], ids=lambda tier: tier.name)
def test_floats_compute_what_they_compute_faster(tier, monkeypatch):
    """Where bytes take two multiplications of 16 bits, Winograd's algorithms win: a byte is off by one, seldom."""
    monkeypatch.setenv(TIER_VARIABLE, tier.name)
    net = Quantized(8)
    x = net.conv(net.input(2, 8, 36, 36), 96, (1, 1), relu=True)
    out = net.floats(net.conv(x, 96, (3, 3), pads=(1, 1, 1, 1)))
    graph = optimise(net.graph(out))
    found = [Session(graph, threads=threads).run(net.fed())[out] for threads in (1, 2)]
    np.testing.assert_array_equal(*found)
    assert any("winograd" in kernel for kernel, _ in Session(graph, threads=1).steps())
    off = np.abs(found[0] - net.values[out])
    step = np.unique(np.abs(np.diff(np.unique(net.values[out])))).min()
    assert off.max() <= 1.01 * step
    assert np.mean(off > 0.5 * step) < 0.01
