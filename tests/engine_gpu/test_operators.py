"""Every operator on a GPU: the processor's result, or a sentence that names it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from comparing import TOLERANCE, compared
from engine_models import load_bytes, onnx_bytes
from hypothesis import given, settings
from onnx import helper
from operator_cases import CASES
from recurrent_cases import cells

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.gpu.activations import FUNCTIONS
from powerlab.engine.gpu.lowering import LOWERINGS
from powerlab.engine.gpu.model import GpuModel
from powerlab.engine.gpu.target import Target
from powerlab.engine.passes import LOWERED, optimise

RANDOM = np.random.default_rng(3)


def graph_of(case):
    operator, more, attributes, constants, opset, shape, _ = CASES[case]
    node = helper.make_node(operator, ["x", *more], ["y"], **attributes)
    return load_bytes(onnx_bytes([node], {"x": shape}, constants=constants, opset=opset))


@pytest.mark.parametrize("case", CASES)
def test_an_operator_is_computed(case):
    compared(graph_of(case))


@settings(max_examples=25, deadline=None)
@given(cells())
def test_any_recurrent_cell_is_computed(data):
    compared(load_bytes(data), tolerance=1e-4)


GATHERS = {"gather": (0, (7, 5), (2, 3)), "gather inside": (1, (3, 7, 4), (5,)), "gather one": (0, (7, 6), (1, 1))}


@pytest.mark.parametrize("case", GATHERS)
@pytest.mark.parametrize("half", [False, True])
def test_places_that_a_run_gives(case, half):
    axis, table, shape = GATHERS[case]
    info = helper.make_tensor_value_info("places", onnx.TensorProto.INT64, shape)
    made = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    node = helper.make_node("Gather", ["w", "places"], ["y"], axis=axis)
    weights = onnx.numpy_helper.from_array(RANDOM.standard_normal(table).astype(np.float16).astype(np.float32), "w")
    model = helper.make_model(helper.make_graph([node], "test", [info], [made], [weights]))
    graph = load_bytes(model.SerializeToString())
    gpu = GpuModel(optimise(graph, for_cores=False), half=half)
    places = RANDOM.integers(-7, 7, shape)
    expected = Session(optimise(graph), 1).run({"places": places})["y"]
    np.testing.assert_array_equal(gpu.run({"places": places})["y"], expected)
    with pytest.raises(PowerlabError, match="'places' picks from 7 rows and holds 7 to 7"):
        gpu.run({"places": np.full(shape, 7)})


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_norms_of_groups(groups):
    count = groups if groups == 6 else 6
    constants = {name: RANDOM.standard_normal(count).astype(np.float32) for name in "sb"}
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=groups)
    compared(load_bytes(onnx_bytes([node], {"x": (2, 6, 3, 5)}, constants=constants, opset=21)))


def test_rows_without_any_number_are_zeros():
    """The attention of exporters: where a softmax is not a number, 0."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["s"]),
        helper.make_node("IsNaN", ["s"], ["n"]),
        helper.make_node("Where", ["n", "zero", "s"], ["y"]),
    ]
    graph = load_bytes(onnx_bytes(nodes, {"x": (3, 4)}, constants={"zero": np.zeros(1, np.float32)}))
    x = RANDOM.standard_normal((3, 4)).astype(np.float32)
    x[1] = -np.inf
    found = GpuModel(optimise(graph, for_cores=False)).run({"x": x})["y"]
    np.testing.assert_allclose(found, Session(optimise(graph), 1).run({"x": x})["y"], atol=1e-6)
    assert not found[1].any()


BOXES = {"all": np.s_[:, :, :], "some": np.s_[1:, ::2, :4], "backwards": np.s_[:1, ::-1, 1:3], "rows": np.s_[1:, 2:]}


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("case", BOXES)
def test_a_box_is_assigned_to(case, half):
    shape, box = (2, 5, 6), BOXES[case]
    places = np.stack(np.meshgrid(*(np.arange(n)[s] for n, s in zip(shape, box, strict=False)), indexing="ij"), -1)
    given = (*places.shape[:-1], *shape[len(box) :])
    node = helper.make_node("ScatterND", ["x", "places", "given"], ["y"])
    graph = load_bytes(onnx_bytes([node], {"x": shape, "given": given}, constants={"places": places}))
    compared(graph, half=half, tolerance=1e-3 if half else TOLERANCE)


@pytest.mark.parametrize(("reduction", "places"), [("add", [[0], [1]]), ("none", [[0], [0]])])
def test_other_scatters_are_refused(reduction, places):
    node = helper.make_node("ScatterND", ["x", "places", "given"], ["y"], "put", reduction=reduction)
    constants = {"places": np.array(places)}
    graph = load_bytes(onnx_bytes([node], {"x": (2, 3), "given": (2, 3)}, constants=constants, opset=18))
    with pytest.raises(PowerlabError, match=r"put.* puts numbers where no constant box is"):
        compared(graph)


def test_what_is_not_supported_is_refused_by_name():
    node = helper.make_node("GatherND", ["x", "places"], ["y"], "picked")
    graph = load_bytes(onnx_bytes([node], {"x": (2, 3)}, constants={"places": np.array([[0, 1], [1, 2]])}))
    with pytest.raises(PowerlabError, match=r"picked.* is not supported on a GPU yet"):
        compared(graph)


def test_only_operators_of_the_engine_are_lowered():
    assert set(LOWERINGS) <= LOWERED


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in ("", "GeluTanh", "Silu")])
def test_a_function_is_precise_everywhere(name):
    """Also where a driver's exp gives up: 0, small numbers, and far out."""
    values = np.concatenate((RANDOM.uniform(-4, 4, 40), [0, 1e-4, -1e-4, 1e-2, -1e-2, 30, -30, 80, -80])).astype(
        np.float32
    )
    if name in ("Log", "Sqrt", "Reciprocal"):
        values = np.abs(values) + np.float32(1e-3)
    node = helper.make_node(name, ["x"], ["y"])
    graph = load_bytes(onnx_bytes([node], {"x": values.shape}, opset={"Gelu": 20, "Swish": 24}.get(name, 18)))
    expected = Session(optimise(graph), 1).run({"x": values})["y"]
    found = GpuModel(optimise(graph, for_cores=False)).run({"x": values})["y"]
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["Sin", "Cos"])
def test_waves_are_precise_far_out(name):
    """A driver's own need not be, beyond pi."""
    values = np.concatenate((RANDOM.uniform(-9999, 9999, 400), np.pi * np.arange(-30, 30) / 4)).astype(np.float32)
    graph = load_bytes(onnx_bytes([helper.make_node(name, ["x"], ["y"])], {"x": values.shape}))
    found = GpuModel(optimise(graph, for_cores=False)).run({"x": values})["y"]
    expected = {"Sin": np.sin, "Cos": np.cos}[name](values.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-7)


@pytest.mark.parametrize("channels", [(3, 5), (4, 8), (9, 17)])
@pytest.mark.parametrize(
    "window",
    [(1, 1, 0, 1, (7, 5)), (3, 1, 1, 1, (9, 6)), (3, 2, 1, 1, (8, 11)), (5, 1, 2, 2, (11, 12)), (1, 2, 0, 1, (6, 6))],
)
@pytest.mark.parametrize("residual", [False, True])
def test_convolutions_of_odd_sizes(channels, window, residual):
    (inputs, outputs), (kernel, stride, pad, dilation, size) = channels, window
    weights = RANDOM.standard_normal((outputs, inputs, kernel, kernel)).astype(np.float32)
    attributes = {"strides": [stride] * 2, "pads": [pad] * 4, "dilations": [dilation] * 2}
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], **attributes)]
    nodes += [helper.make_node("Add", ["c", "s"], ["a"])] if residual else []
    nodes += [helper.make_node("Relu", ["a" if residual else "c"], ["y"])]
    made = [(side + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for side in size]
    shapes = {"x": (2, inputs, *size), **({"s": (2, outputs, *made)} if residual else {})}
    compared(load_bytes(onnx_bytes(nodes, shapes, constants={"w": weights})))


@pytest.mark.parametrize(("groups", "each"), [(2, (4, 8)), (3, (5, 2)), (6, (1, 2))])
def test_grouped_convolutions(groups, each):
    inputs, outputs = each
    weights = RANDOM.standard_normal((groups * outputs, inputs, 3, 3)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=groups, pads=[1, 1, 1, 1])
    compared(load_bytes(onnx_bytes([node], {"x": (2, groups * inputs, 6, 7)}, constants={"w": weights})))


@pytest.mark.parametrize("channels", [6, 12, 17])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
def test_depthwise_convolutions(channels, stride, dilation):
    weights = RANDOM.standard_normal((channels, 1, 3, 3)).astype(np.float32)
    attributes = {"strides": [stride] * 2, "pads": [1] * 4, "dilations": [dilation] * 2, "group": channels}
    node = helper.make_node("Conv", ["x", "w"], ["y"], **attributes)
    compared(load_bytes(onnx_bytes([node], {"x": (2, channels, 9, 8)}, constants={"w": weights})))


@pytest.mark.parametrize("kernel", [(1, 5), (9, 2), (7, 7)])
def test_depthwise_convolutions_of_any_window(kernel):
    weights = RANDOM.standard_normal((6, 1, *kernel)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[2, 1, 3, 2], group=6)
    compared(load_bytes(onnx_bytes([node], {"x": (2, 6, 11, 9)}, constants={"w": weights})))


@pytest.mark.parametrize("rows", [1, 3, 8, 21])
@pytest.mark.parametrize("sizes", [(16, 8), (13, 10), (64, 130)])
def test_fully_connected_layers(rows, sizes):
    inputs, outputs = sizes
    constants = {
        "w": RANDOM.standard_normal((outputs, inputs)).astype(np.float32),
        "b": RANDOM.standard_normal(outputs).astype(np.float32),
    }
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)
    compared(load_bytes(onnx_bytes([node], {"x": (rows, inputs)}, constants=constants)))


def sum_of_layers(*, rows=21, outputs=12, function=None, given=("y",), layers=1):
    """Return a graph that adds rows of an image to what a linear layer, or each of two, makes of them."""
    constants = {f"w{index}": RANDOM.standard_normal((8, outputs)).astype(np.float32) for index in range(layers)}
    constants["b"] = RANDOM.standard_normal(outputs).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", f"w{index}"], [f"m{index}"]) for index in range(layers)]
    nodes.append(helper.make_node("Add", ["m0", "b"], ["shifted"]))
    added = "shifted"
    if function is not None:
        nodes.append(helper.make_node(function, ["shifted"], ["f"]))
        added = "f"
    nodes += [
        helper.make_node("Add", [added, "m1" if layers > 1 else "r"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["y"]),
    ]
    shapes = {"x": (2, rows, 8), **({} if layers > 1 else {"r": (2, rows, outputs)})}
    return load_bytes(onnx_bytes(nodes, shapes, given, constants=constants))


def added_by_themselves(model):
    return [kernel for kernel, _ in model.steps()].count("pointwise_fp32")


@pytest.mark.parametrize("layers", [1, 2])
def test_the_kernel_of_a_layer_adds(layers):
    assert added_by_themselves(compared(sum_of_layers(layers=layers))) == 0


@pytest.mark.parametrize(
    "choices", [{"outputs": 10}, {"rows": 3}, {"function": "Sigmoid"}, {"given": ("y", "shifted")}], ids=str
)
def test_sums_that_a_layer_cannot_make_are_kernels(choices):
    assert added_by_themselves(compared(sum_of_layers(**choices))) == 1


def test_a_sum_behind_a_layer_is_near_in_16_bits():
    compared(sum_of_layers(), half=True, tolerance=4e-3)


def test_a_layer_whose_weights_are_more_than_a_kernel_sees_is_cut(monkeypatch):
    from powerlab.engine.gpu.lowering import lower

    constants = {"w": RANDOM.standard_normal((40, 32)).astype(np.float32)}
    graph = load_bytes(
        onnx_bytes([helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)], {"x": (1, 32)}, constants=constants)
    )
    program = lower(optimise(graph, for_cores=False), Target(largest_bytes=2048))
    assert [one.kernel for one in program.dispatches].count("dense") == 3
    monkeypatch.setattr("powerlab.engine.gpu.model.lower", lambda *_, **__: program)
    compared(graph)


@pytest.mark.parametrize("joined", [(4, 8), (3, 6), (5, 4, 2)])
def test_concatenations_of_images_in_blocks(joined):
    nodes = [helper.make_node("MaxPool", [f"x{i}"], [f"p{i}"], kernel_shape=[2, 2]) for i in range(len(joined))]
    nodes.append(helper.make_node("Concat", [f"p{i}" for i in range(len(joined))], ["c"], axis=1))
    nodes.append(helper.make_node("AveragePool", ["c"], ["y"], kernel_shape=[2, 2]))
    compared(load_bytes(onnx_bytes(nodes, {f"x{i}": (2, channels, 5, 6) for i, channels in enumerate(joined)})))


@pytest.mark.parametrize(
    ("joined", "images", "copied"),
    [((4, 8), 1, 0), ((8, 4, 3), 1, 0), ((3, 4), 1, 2), ((4, 6, 4), 1, 2), ((4, 8), 2, 2)],
)
@pytest.mark.parametrize("half", [False, True])
def test_what_is_joined_is_computed_in_its_place(joined, images, copied, half):
    """Also what is joined to another thing first, and what others read beside that."""
    nodes = [helper.make_node("MaxPool", [f"x{i}"], [f"p{i}"], kernel_shape=[2, 2]) for i in range(len(joined))]
    nodes += [
        helper.make_node("Concat", [f"p{i}" for i in range(len(joined))], ["c"], axis=1),
        helper.make_node("MaxPool", ["c"], ["d"], kernel_shape=[3, 3], pads=[1] * 4),
        helper.make_node("Concat", ["c", "d"], ["e"], axis=1),
        helper.make_node("AveragePool", ["e"], ["y"], kernel_shape=[2, 2]),
        helper.make_node("AveragePool", ["p0"], ["z"], kernel_shape=[2, 2]),
    ]
    shapes = {f"x{i}": (images, channels, 9, 17) for i, channels in enumerate(joined)}
    model = compared(
        load_bytes(onnx_bytes(nodes, shapes, outputs=["y", "z"])), tolerance=2e-3 if half else TOLERANCE, half=half
    )
    whole = images == 1 and sum(joined) % 4 == 0
    moves = [kernel for kernel, _ in model.steps() if kernel.split("_")[0] in ("blocks", "channels")]
    assert len(moves) == copied + (0 if whole else 2)


def turned(*shape):
    order = [*range(1, len(shape), 2), *range(0, len(shape), 2)]
    return load_bytes(onnx_bytes([helper.make_node("Transpose", ["x"], ["y"], perm=order)], {"x": shape}))


@pytest.mark.parametrize("half", [False, True])
def test_moves_along_many_axes_are_several(half):
    """A kernel goes along five: by a dispatch for each place along the two shortest."""
    model = compared(turned(3, 4, 2, 5, 3, 2, 3), half=half, tolerance=2e-3 if half else TOLERANCE)
    assert [kernel.split("_")[0] for kernel, _ in model.steps()].count("strided") == 4


def test_moves_along_many_long_axes_are_refused():
    with pytest.raises(PowerlabError, match="moves along 8 axes, and on a GPU the engine does along 5"):
        compared(turned(*(5,) * 8))


def test_what_is_stored_in_16_bits_is_near():
    compared(graph_of("conv"), tolerance=2e-3, half=True)


def test_images_of_one_size_share_their_pipelines():
    models = [compared(graph_of("conv")) for _ in range(2)]
    assert models[0].steps() == models[1].steps()
