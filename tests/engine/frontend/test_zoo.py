"""The zoo: the published sizes, the same weights on every machine, sound activations, and the answers of a peer."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from engine_models import TOLERANCE, random_inputs, relative_error, run_ort
from engine_reference import run_graph

from powerlab.backends.onnx_export import export_onnx
from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.zoo import ZOO
from powerlab.engine.ir.graph import convolutions_of
from powerlab.engine.ir.statistics import mac_count, operator_counts, parameter_count
from powerlab.engine.passes import optimise

# Parameters and GMAC are those of torchvision's documentation. Caffe's AlexNet has 60,965,224 parameters; its 724 MMAC
# follow from the layer sizes of the paper. YOLOv3's GMAC are half of Darknet's 65.86 BFLOPs, its parameters those of
# its well-known PyTorch ports. YOLOv3-tiny's GMAC are half of Darknet's 5.56 BFLOPs; of the 8,858,734 numbers in
# yolov3-tiny.weights (https://pjreddie.com/darknet/yolo) 6,368 are means and variances, which are not learned. FCN-S's
# follow from its layers, those of the LSTMs from PyTorch's nn.LSTM(256, 256, 2). ViT-Tiny's are those of DeiT-Ti: the
# 1.258 G that fvcore counts for it, less five for each number of its 25 layer norms.
PUBLISHED = {
    "alexnet": (60_965_224, 0.7244e9),
    "densenet121": (7_978_856, 2.834e9),
    "densenet201": (20_013_928, 4.291e9),
    "efficientnet-b0": (5_288_548, 0.3858e9),
    "fcn5": (117_997_696, 0.11796e9),
    "lstm2": (1_052_672, 0.033554e9),
    "mobilenetv2": (3_504_872, 0.3008e9),
    "mobilenetv3": (5_483_032, 0.2166e9),
    "resnet18": (11_689_512, 1.814e9),
    "resnet50": (25_557_032, 4.089e9),
    "resnet101": (44_549_160, 7.801e9),
    "resnet152": (60_192_808, 11.514e9),
    "squeezenet": (1_235_496, 0.3492e9),
    "vgg16": (138_357_544, 15.470e9),
    "vit-tiny": (5_717_416, 1.258e9 - 5 * 25 * 197 * 192),
    "yolov3": (61_949_149, 32.932e9),
    "yolov3-tiny": (8_858_734 - 6_368, 5.56e9 / 2),
}


# Multiplications that three convolutions save because their pools, of four pixels each, go first.
POOLED_FIRST = {
    "densenet121": 3 * (256 * 128 * 28**2 + 512 * 256 * 14**2 + 1024 * 512 * 7**2),
    "densenet201": 3 * (256 * 128 * 28**2 + 512 * 256 * 14**2 + 1792 * 896 * 7**2),
}


LARGE = {"alexnet", "densenet201", "fcn5", "resnet101", "resnet152", "vgg16", "yolov3"}
"""Networks that take seconds to draw or to run, and are made by the same rules as the others."""


@pytest.fixture(scope="module", params=sorted(ZOO))
def zoo_graph(request):
    return load_graph(request.param)


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.campaign(minutes=2)] * (name in LARGE)) for name in sorted(ZOO)],
)
def drawn_graph(request):
    """A network whose weights are drawn or which is run: only the light ones in the fast tests."""
    return load_graph(request.param)


def test_parameters_and_macs_are_the_published_ones(zoo_graph):
    parameters, macs = PUBLISHED[zoo_graph.name]
    assert parameter_count(zoo_graph) == parameters
    assert mac_count(zoo_graph) == pytest.approx(macs, rel=1e-3)
    assert mac_count(optimise(zoo_graph)) == mac_count(zoo_graph) - POOLED_FIRST.get(zoo_graph.name, 0)


@pytest.mark.campaign(minutes=2)
def test_a_full_size_image_gives_what_onnx_runtime_gives(zoo_graph):
    inputs = random_inputs(zoo_graph)
    expected = run_ort(export_onnx(zoo_graph), inputs)
    assert relative_error(Session(optimise(zoo_graph), threads=2).run(inputs), expected) < TOLERANCE


@pytest.mark.parametrize("name", ["resnet50", "mobilenetv2"])
def test_a_small_batch_gives_what_onnx_runtime_gives_in_numpy_and_in_the_session(name):
    graph = load_graph(name, {"x": (2, 3, 64, 64)})
    inputs = random_inputs(graph, seed=1)
    expected = run_ort(export_onnx(graph), inputs)
    assert relative_error(run_graph(optimise(graph), inputs), expected) < TOLERANCE
    assert relative_error(Session(optimise(graph), threads=2).run(inputs), expected) < TOLERANCE


def test_activations_neither_vanish_nor_blow_up(drawn_graph):
    outputs = Session(optimise(drawn_graph), threads=2).run(random_inputs(drawn_graph))
    outputs = next(iter(outputs.values()))
    assert np.isfinite(outputs).all()
    assert 1e-3 < float(outputs.std()) < 100
    assert len(np.unique(outputs)) > 800, "only a rectifier at the end makes many alike"


def test_everything_is_fused():
    assert operator_counts(optimise(load_graph("resnet50"))) == {
        "FusedConv": 53,
        "MaxPool": 1,
        "GlobalAveragePool": 1,
        "Reshape": 1,
        "FusedGemm": 1,
    }
    graph = optimise(load_graph("mobilenetv2"))
    assert "Add" not in operator_counts(graph)
    fused = [one for node in graph.nodes for one in (convolutions_of(node) or (node,)) if one.op_type == "FusedConv"]
    assert len(fused) == 52
    assert sum(bool(conv.inputs[3]) for conv in fused) == 10


# CRC-32 over all weights in order: other weights would make measurements of before and after incomparable.
CHECKSUMS = {
    "alexnet": 2251457152,
    "densenet121": 3644670923,
    "densenet201": 385905565,
    "efficientnet-b0": 1776127107,
    "fcn5": 1295009515,
    "lstm2": 3026417188,
    "mobilenetv2": 4264721478,
    "mobilenetv3": 2378804747,
    "resnet18": 566548196,
    "resnet50": 3316015593,
    "resnet101": 1798011104,
    "resnet152": 865992645,
    "squeezenet": 2852693038,
    "vgg16": 2402963543,
    "vit-tiny": 2259373299,
    "yolov3": 3602688840,
    "yolov3-tiny": 4130448029,
}


def test_the_weights_are_the_same_on_every_machine(drawn_graph):
    checksum = 0
    for value in drawn_graph.constants.values():
        checksum = zlib.crc32(value.tobytes(), checksum)
    assert checksum == CHECKSUMS[drawn_graph.name]


def test_the_same_name_gives_the_same_weights():
    first, second = load_graph("mobilenetv2"), load_graph("mobilenetv2", {"x": (2, 3, 32, 32)})
    assert first.constants.keys() == second.constants.keys()
    assert all(np.array_equal(first.constants[name], second.constants[name]) for name in first.constants)


def test_alexnet_has_groups_norms_and_the_published_image_sizes(zoo_graph):
    if zoo_graph.name != "alexnet":
        assert zoo_graph.inputs[0].shape == (1, *ZOO[zoo_graph.name].input_shape)
        return
    sizes = [zoo_graph.shape(node.outputs[0])[1:3] for node in zoo_graph.nodes if node.op_type in ("Conv", "MaxPool")]
    assert sizes == [(96, 55), (96, 27), (256, 27), (256, 13), (384, 13), (384, 13), (256, 13), (256, 6)]
    assert [n.attributes["group"] for n in zoo_graph.nodes if n.op_type == "Conv"] == [1, 2, 1, 2, 2]


@pytest.mark.parametrize(
    ("model", "shapes", "batch", "sentence"),
    [
        (
            "resnet51",
            None,
            None,
            "there is no model 'resnet51' .did you mean resnet50..; known are alexnet, .*, yolov3, yolov3-tiny, or",
        ),
        ("resnet50", {"data": (1, 3, 224, 224)}, None, "resnet50 has no input 'data'; its input is 'x'"),
        ("resnet50", {"x": (1, 1, 224, 224)}, None, r"images of shape \(batch, 3, height, width\), but \(1, 1, 224"),
        ("resnet50", {"x": (3, 224, 224)}, None, r"images of shape \(batch, 3"),
        ("alexnet", {"x": (1, 3, 64, 64)}, None, r"alexnet cannot take images of shape \(1, 3, 64, 64\): .* node"),
        ("fcn5@64", None, None, "fcn5 takes no images, so 'fcn5@64' has no meaning"),
        ("fcn5", {"x": (1, 3)}, None, r"fcn5 takes rows of shape \(batch, 26752\), but \(1, 3\) was given"),
        ("lstm2@64", None, None, "lstm2 takes no images, so 'lstm2@64' has no meaning"),
        ("lstm2", {"x": (1, 32, 8)}, None, r"lstm2 takes sequences of shape \(batch, steps, 256\), but \(1, 32, 8\)"),
        ("lstm2", {"x": (32, 256)}, None, r"lstm2 takes sequences of shape \(batch, steps, 256\), but \(32, 256\)"),
        ("resnet50@", None, None, "there is no model 'resnet50@'"),
        ("resnet50@0", None, None, "resnet50 takes images of shape"),
        ("alexnet@64", None, None, r"alexnet cannot take images of shape \(1, 3, 64, 64\)"),
        ("resnet50", None, 0, "batch size must be 1 or more"),
        ("model.onnx", None, None, "model.onnx is not a model file"),
    ],
)
def test_a_wrong_name_or_shape_is_one_sentence(model, shapes, batch, sentence):
    with pytest.raises(PowerlabError, match=sentence):
        load_graph(model, shapes, batch)


@pytest.mark.parametrize("shape", [(1, 1, 256), (3, 5, 256)])
def test_sequences_may_have_any_number_of_steps(shape):
    graph = load_graph("lstm2", {"x": shape})
    assert graph.inputs[0].shape == graph.outputs[0].shape == shape
    inputs = random_inputs(graph)
    expected = run_ort(export_onnx(graph), inputs)
    assert relative_error(Session(optimise(graph), threads=2).run(inputs), expected) < TOLERANCE


def test_batch_size_sets_the_first_axis():
    graph = load_graph("mobilenetv2", batch_size=4)
    assert graph.inputs[0].shape == (4, 3, 224, 224)
    assert graph.outputs[0].shape == (4, 1000)


@pytest.mark.parametrize(("model", "shape"), [("resnet18@96", (2, 3, 96, 96)), ("yolov3@64x96", (2, 3, 64, 96))])
def test_a_name_may_say_the_size_of_the_images(model, shape):
    assert load_graph(model, batch_size=2).inputs[0].shape == shape


@pytest.mark.parametrize(
    ("model", "counts"),
    [
        ("yolov3@64", {"FusedConv": 75, "Add": 23, "Resize": 2, "Concat": 2}),
        ("yolov3-tiny@64", {"FusedConv": 13, "MaxPool": 6, "Resize": 1, "Concat": 1}),
    ],
)
def test_every_layer_of_yolov3_takes_its_activation_in(model, counts):
    assert operator_counts(optimise(load_graph(model))) == counts


def test_yolov3_tiny_has_the_published_maps():
    """Those that Darknet prints when it loads yolov3-tiny.cfg; its last pool of 2 x 2 keeps the size."""
    graph = load_graph("yolov3-tiny")
    maps = [graph.shape(node.outputs[0])[1:3] for node in graph.nodes if node.op_type in ("Conv", "MaxPool")]
    backbone = [(16, 416), (16, 208), (32, 208), (32, 104), (64, 104), (64, 52), (128, 52), (128, 26), (256, 26)]
    assert maps[:13] == [*backbone, (256, 13), (512, 13), (512, 13), (1024, 13)]
    assert [info.shape for info in graph.outputs] == [(1, 255, 13, 13), (1, 255, 26, 26)]
