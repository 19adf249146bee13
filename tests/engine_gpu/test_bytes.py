"""Networks in 8 bits on a GPU: the same bytes as in integers, by dot products and without."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from engine_native.quantized_graphs import Quantized
from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.gpu import model as gpu_model
from powerlab.engine.gpu.choice.candidates import candidates
from powerlab.engine.gpu.choice.method import BYTES_CACHED, BYTES_MATRICES, BYTES_SHARED, Numbers
from powerlab.engine.gpu.device import this_target
from powerlab.engine.gpu.model import GpuModel
from powerlab.engine.passes import optimise

KINDS = {
    "dot products": ({"broadcasts": True}, "quant_conv_dot_fp32"),
    "one by one": ({"broadcasts": True, "dot_product": False}, "quant_conv_fp32"),
    "in shared memory": ({"broadcasts": False, "byte_matrices": ()}, "quant_tiled_dot_fp32"),
    "there one by one": ({"broadcasts": False, "byte_matrices": (), "dot_product": False}, "quant_tiled_fp32"),
}


@pytest.fixture(params=KINDS)
def kernel(request, monkeypatch):
    """Return the kernel of convolutions on a GPU that has some of what this one has."""
    lacks, name = KINDS[request.param]
    target = replace(this_target(), **lacks)
    monkeypatch.setattr(gpu_model, "this_target", lambda: target)
    return name


def check(net, *outputs, **choices):
    model = GpuModel(optimise(net.graph(*outputs), for_cores=False), **choices)
    found = model.run(net.fed())
    for name in outputs:
        np.testing.assert_allclose(found[name], net.values[name], rtol=1e-6, atol=1e-6)
    model.poison()
    assert all(np.array_equal(found[name], again) for name, again in model.run(net.fed()).items())
    return [kernel for kernel, _ in model.steps()]


def test_a_residual_network_runs_in_bytes(kernel):
    net = Quantized()
    x = net.conv(net.input(2, 3, 21, 19), 40, (7, 7), strides=(2, 2), pads=(3, 3, 3, 3), relu=True)
    x = net.max_pool(x, (3, 3), (2, 2), (1, 1, 1, 1))
    y = net.conv(x, 24, (1, 1), relu=True)
    y = net.conv(y, 24, (3, 3), pads=(1, 1, 1, 1), relu=True)
    y = net.conv(y, 40, (1, 1), residual=x, relu=True)
    assert kernel in check(net, net.gemm(net.flatten(net.global_average(y)), 21))


def test_depthwise_and_grouped_convolutions(kernel):
    net = Quantized(1)
    x = net.conv(net.input(1, 20, 11, 13), 44, (1, 1), relu=True)
    x = net.conv(x, 44, (3, 3), pads=(1, 1, 1, 1), group=44, relu=True)
    x = net.conv(x, 42, (1, 1))
    x = net.conv(x, 27, (3, 3), pads=(1, 1, 1, 1), group=3)
    x = net.conv(x, 32, (1, 1))
    x = net.conv(x, 96, (3, 3), pads=(2, 2, 2, 2), group=4, dilations=(2, 2))
    check(net, net.floats(net.conv(x, 18, (2, 2), strides=(2, 2))))


def test_all_tiles_give_the_same_bytes():
    net = Quantized(2)
    x = net.conv(net.input(1, 22, 9, 8), 70, (1, 1), relu=True)
    y = net.conv(x, 70, (3, 3), pads=(1, 1, 1, 1), residual=x, relu=True)
    y = net.floats(net.conv(y, 24, (2, 2), strides=(2, 2)))
    shape = ConvShape(images=1, inputs=70, outputs=70, kernel=(3, 3), pads=(1, 1), in_size=(9, 8), size=(9, 8))
    methods = candidates(shape, this_target(), Numbers.INT8)
    assert {BYTES_CACHED, BYTES_SHARED} <= {one.kernel for one in methods}
    for method in methods:
        assert any(name.startswith(method.kernel) for name in check(net, y, choose=lambda *_, one=method: one))


def test_sums_of_bytes():
    net = Quantized(1)
    x = net.conv(net.input(1, 20, 11, 13), 44, (1, 1), relu=True)
    pooled = [net.max_pool(one, (3, 3), (2, 2), (1, 1, 1, 1)) for one in (x, net.conv(x, 44, (1, 1)))]
    assert "quant_add_fp32" in check(net, net.floats(net.add(*pooled, relu=True)))


def test_a_last_layer_stays_floats():
    net = Quantized(3)
    assert "quantize_fp32" in check(
        net, net.conv(net.input(1, 16, 6, 6), 30, (3, 3), pads=(1, 1, 1, 1), quantized=False)
    )


def test_each_channel_alone_and_a_function_end_in_floats():
    net = Quantized(5)
    x = net.input(1, 20, 12, 11)
    each = net.conv(x, 20, (3, 3), pads=(1, 1, 1, 1), group=20, quantized=False)
    all_of_them = net.conv(x, 30, (1, 1), quantized=False)
    ended = net.node("Sigmoid", (all_of_them,), net.tensors[all_of_them].shape)
    net.values[ended] = 1 / (1 + np.exp(-net.values[all_of_them]))
    kernels = check(net, each, ended)
    assert "quant_depthwise_fp32" in kernels
    assert not any(name.startswith("pointwise") for name in kernels), "the function is a part of the convolution"


@pytest.mark.parametrize("name", ["squeezenet", "densenet121", "yolov3-tiny"])
def test_a_network_gives_the_bytes_of_the_processor(name):
    choices = {"precision": "int8", "shapes": {"x": (1, 3, 32, 32)}}
    on_gpu = Session(name, device="gpu", **choices)
    inputs = synthetic_inputs(on_gpu.inputs, 1, on_gpu.dtypes)
    found, expected = on_gpu.run(inputs), Session(name, 1, **choices).run(inputs)
    assert any(kernel.startswith((BYTES_CACHED, BYTES_SHARED, BYTES_MATRICES)) for kernel, _ in on_gpu.steps())
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, atol=0.02 * np.abs(value).max())


def test_what_has_no_kernel_in_bytes_is_refused_by_name():
    net = Quantized(4)
    x = net.conv(net.input(1, 6, 6, 6), 6, (1, 1))
    graph = optimise(net.graph(net.floats(net.conv(x, 8, (1, 1)))), for_cores=False)
    nodes = [replace(node, op_type="QuantNothing") if node.op_type == "QuantConv" else node for node in graph.nodes]
    with pytest.raises(PowerlabError, match=r"QuantNothing node .* is not supported on a GPU yet"):
        GpuModel(replace(graph, nodes=tuple(nodes)))
