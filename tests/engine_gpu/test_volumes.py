"""Networks over volumes on a GPU: convolutions by every kernel, and what stands between them in networks."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import TOLERANCE, compared
from engine_models import load_bytes, onnx_bytes
from onnx import helper
from volume_networks import unet, video_network

from powerlab.domain.errors import PowerlabError
from powerlab.engine.gpu.choice.method import SHARED, SHARED_HALF, Method
from powerlab.engine.gpu.device import this_target
from powerlab.engine.gpu.lowering import lower
from powerlab.engine.passes import optimise

RANDOM = np.random.default_rng(7)
IN_HALF = 4e-3
METHODS = {
    "caches": Method(lanes=8, pixels=2, blocks=2),
    "tiles": Method(kernel=SHARED, lanes=8, pixels=4, blocks=2, down=4, depth=2),
    "odd tiles": Method(kernel=SHARED, lanes=16, pixels=1, blocks=1, down=2, depth=3),
    "parts": Method(kernel=SHARED, lanes=8, pixels=4, blocks=2, down=4, depth=2, parts=5),
    "two steps ahead": Method(kernel=SHARED, lanes=8, pixels=2, blocks=2, down=4, depth=1, ahead=2),
}
WINOGRAD = {
    "winograd 2": Method(lanes=16, pixels=2, blocks=2, winograd=2),
    "winograd 4": Method(lanes=32, pixels=1, blocks=1, winograd=4),
    "winograd of tiles": Method(kernel=SHARED, lanes=8, pixels=2, blocks=1, down=2, depth=4, winograd=4),
}
WINDOWS = {
    "all around": ((3, 3, 3), {"pads": [1] * 6}),
    "of a plane": ((1, 3, 3), {"pads": [0, 1, 1, 0, 1, 1]}),
    "strides": ((3, 2, 4), {"strides": [2, 3, 1], "pads": [1, 1, 2, 1, 0, 2]}),
    "dilations": ((2, 3, 2), {"dilations": [3, 2, 1], "pads": [2, 1, 0, 1, 2, 1]}),
    "unlike pads": ((3, 2, 3), {"pads": [2, 0, 1, 0, 1, 2]}),
    "one pixel in two": ((1, 1, 1), {"strides": [2, 2, 2]}),
    "one pixel, or none": ((1, 1, 1), {"strides": [2, 2, 2], "pads": [1, 0, 0, 2, 0, 0]}),
    "one pixel of each plane": ((2, 1, 1), {"strides": [2, 1, 2]}),
}
"""kernel, and how it moves"""


def graph_of(window, channels=(9, 21), size=(5, 7, 6), *, residual=False):
    """Return a convolution over two volumes with a bias and an activation, and a sum before that."""
    (kernel, moves), (inputs, outputs) = window, channels
    constants = {
        "w": RANDOM.standard_normal((outputs, inputs, *kernel)).astype(np.float32),
        "b": RANDOM.standard_normal(outputs).astype(np.float32),
    }
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], **moves)]
    nodes += [helper.make_node("Add", ["s", "c"], ["a"])] if residual else []
    nodes += [helper.make_node("LeakyRelu", ["a" if residual else "c"], ["y"], alpha=0.25)]
    alone = load_bytes(onnx_bytes(nodes[:1], {"x": (2, inputs, *size)}, ("c",), constants=constants))
    shapes = {"x": (2, inputs, *size), **({"s": alone.shape("c")} if residual else {})}
    return load_bytes(onnx_bytes(nodes, shapes, constants=constants))


def kernels(model):
    return [kernel.rpartition("_")[0] for kernel, _ in model.steps()]


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("window", WINDOWS)
def test_convolutions(window, method, residual):
    chosen = METHODS[method]
    made = kernels(compared(graph_of(WINDOWS[window], residual=residual), choose=lambda *_: chosen))
    assert f"volume_{chosen.kernel}" in made
    assert ("sum_parts" in made) == (chosen.parts > 1)
    assert "pointwise" not in made


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize(
    "window",
    [((3, 1, 1), {"strides": [2, 1, 1], "pads": [1, 0, 0, 1, 0, 0]}), ((5, 7, 6), {"strides": [5, 7, 6]})],
    ids=["columns", "side by side"],
)
def test_convolutions_that_are_those_of_images(window, half):
    made = kernels(compared(graph_of(window), half=half, tolerance=IN_HALF if half else TOLERANCE))
    assert not any(name.startswith("volume") for name in made)


@pytest.mark.parametrize("channels", [(1, 4), (4, 3), (8, 16), (24, 12)])
@pytest.mark.parametrize("method", METHODS)
def test_channels(channels, method):
    """Few, and of tiles whose blocks are all of one tap."""
    compared(graph_of(WINDOWS["all around"], channels), choose=lambda *_: METHODS[method])


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("method", WINOGRAD)
@pytest.mark.parametrize(
    "window",
    [
        WINDOWS["all around"],
        WINDOWS["of a plane"],
        ((2, 3, 3), {"strides": [2, 1, 1], "dilations": [3, 1, 1], "pads": [2, 0, 1, 1, 1, 0]}),
    ],
    ids=["all around", "of a plane", "across planes in any way"],
)
def test_winograd(window, method, residual):
    """Planes by themselves, and products over those that a window sees."""
    made = kernels(compared(graph_of(window, residual=residual), choose=lambda *_: WINOGRAD[method]))
    assert {"volume_winograd_in", "volume_winograd_out"} < set(made)
    assert "pointwise" not in made


@pytest.mark.parametrize(
    "method",
    [
        METHODS["caches"],
        METHODS["parts"],
        Method(kernel=SHARED_HALF, lanes=8, pixels=4, blocks=2, down=4, depth=2),
        Method(kernel=SHARED_HALF, lanes=8, pixels=2, blocks=2, down=4, depth=4, winograd=2),
    ],
    ids=["caches", "parts", "products of 16 bits", "winograd"],
)
def test_in_16_bits(method):
    if method.kernel == SHARED_HALF and not this_target().half_arithmetic:
        pytest.skip("this GPU's driver does not compute with 16-bit numbers")
    graph = graph_of(WINDOWS["all around"], (32, 24), residual=True)
    compared(graph, tolerance=IN_HALF, half=True, choose=lambda *_: method)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("network", [video_network, unet])
def test_networks(network, half):
    compared(load_bytes(network(RANDOM)), tolerance=IN_HALF if half else TOLERANCE, half=half)


def test_transposed_windows_side_by_side():
    weights = RANDOM.standard_normal((6, 5, 2, 3, 2)).astype(np.float32)
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 3, 2])
    compared(load_bytes(onnx_bytes([node], {"x": (2, 6, 3, 4, 5)}, constants={"w": weights})))


def test_what_is_joined_of_volumes_stays_in_blocks():
    nodes = [helper.make_node("Conv", [f"x{i}", f"w{i}"], [f"c{i}"], pads=[1] * 6) for i in range(2)]
    nodes += [
        helper.make_node("Concat", ["c0", "c1"], ["c"], axis=1),
        helper.make_node("Conv", ["c", "w2"], ["y"]),
    ]
    widths = {"w0": (8, 3), "w1": (4, 5), "w2": (4, 12)}
    constants = {name: RANDOM.standard_normal((*sizes, 3, 3, 3)).astype(np.float32) for name, sizes in widths.items()}
    shapes = {"x0": (1, 3, 4, 8, 8), "x1": (1, 5, 4, 8, 8)}
    made = kernels(compared(load_bytes(onnx_bytes(nodes, shapes, constants=constants))))
    assert not {"blocks", "channels", "strided", "pack", "unpack"} & set(made)


@pytest.mark.parametrize(
    ("operator", "weights", "moves"),
    [
        ("Conv", (6, 1, 3, 3, 3), {"group": 6}),
        ("ConvTranspose", (6, 4, 3, 3, 3), {"strides": [2, 2, 2]}),
    ],
    ids=["groups", "windows that overlap, transposed"],
)
def test_what_has_no_kernel_is_refused_by_name(operator, weights, moves):
    constants = {"w": RANDOM.standard_normal(weights).astype(np.float32)}
    node = helper.make_node(operator, ["x", "w"], ["y"], "moving", **moves)
    graph = load_bytes(onnx_bytes([node], {"x": (1, 6, 4, 5, 6)}, constants=constants))
    with pytest.raises(PowerlabError, match=r"'moving' is not supported on a GPU yet"):
        compared(graph)


LONG = {"planes": (32_762, 2, 2), "rows": (2, 32_762, 2)}


@pytest.mark.parametrize("axis", LONG)
def test_many_planes_or_rows(axis):
    compared(graph_of(((2, 2, 2), {}), (1, 1), LONG[axis]), choose=lambda *_: METHODS["tiles"])


@pytest.mark.parametrize("axis", LONG)
def test_more_planes_or_rows_than_kernels_count_are_refused(axis):
    graph = graph_of(((2, 2, 2), {"pads": [0, 0, 0, 7, 7, 0]}), (1, 1), LONG[axis])
    with pytest.raises(PowerlabError, match=r"on a GPU the engine does up to 32768 of each"):
        lower(optimise(graph, for_cores=False), this_target())
