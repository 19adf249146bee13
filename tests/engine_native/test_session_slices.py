"""A session that cuts its batch into slices: the same bits, the threads it was given, weights once, images apart."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import onnx
import onnx.parser
import pytest

from engine_native.graphs import GraphMaker
from new_threads import new_thread_counter
from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.codegen import lower
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.passes import optimise
from powerlab.engine.runtime.plan import build_plans
from powerlab.engine.runtime.slices import SlicedPlan
from powerlab.engine.target.tiers import choose_tier, native_engine


def batch_of(model, batch):
    return {info.name: info.shape for info in load_graph(model, batch_size=batch).inputs}


def inputs_for(session, seed=5):
    random = np.random.default_rng(seed)
    return {name: random.standard_normal(shape, dtype=np.float32) for name, shape in session.inputs.items()}


def whole_and_cut(model, batch, slices, threads, **more):
    shapes = batch_of(model, batch)
    return Session(model, threads, shapes, **more), Session(model, threads, shapes, slices=slices, **more)


@pytest.mark.parametrize(
    ("model", "batch", "slices", "threads"),
    [
        ("mobilenetv2@128", 4, 2, 2),
        ("mobilenetv2@128", 12, 3, 6),
        ("densenet121@64", 4, 2, 4),
        ("yolov3-tiny@96", 4, 2, 2),
        ("resnet18@96", 12, 2, 2),  # the fully connected layer of twelve images is a convolution, that of six is not
        ("squeezenet@64", 16, 2, 2),
        ("lstm2", 4, 2, 2),
    ],
)
def test_slices_give_the_bits_of_the_whole_batch(model, batch, slices, threads):
    whole, cut = whole_and_cut(model, batch, slices, threads)
    inputs = inputs_for(whole)
    assert cut.inputs == whole.inputs
    assert cut.outputs == whole.outputs
    expected = whole.run(inputs)
    cut.poison()
    for _ in range(2):
        found = cut.run(inputs)
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value)


@pytest.mark.parametrize("model", ["mobilenetv2@96", "efficientnet-b0@96", "squeezenet"])
def test_a_slice_may_be_one_image(model):
    """Which a network is optimised and cut for in another way than for several; its convolutions stay the same."""
    whole, cut = whole_and_cut(model, 3, 3, 3)
    inputs = inputs_for(whole)
    expected, found = whole.run(inputs), cut.run(inputs)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)
    chosen = [[choice.algorithm for choice in session.choices if choice] for session in (whole, cut)]
    assert chosen[0] == chosen[1]


def test_one_sequence_alone_is_summed_in_another_order():
    """The kernel ``lstm`` keeps two sums for it; nothing but rounding comes of that."""
    whole, cut = whole_and_cut("lstm2", 2, 2, 2)
    inputs = inputs_for(whole)
    (expected,), (found,) = whole.run(inputs).values(), cut.run(inputs).values()
    assert np.abs(found - expected).max() <= 1e-6 * np.abs(expected).max()


def test_each_slice_reads_and_writes_its_own_part():
    whole, cut = whole_and_cut("squeezenet@64", 4, 4, 4)
    inputs = inputs_for(whole)
    changed = {name: value.copy() for name, value in inputs.items()}
    changed["x"][2] += 1
    first, second = cut.run(inputs)["y"], cut.run(changed)["y"]
    assert [bool((first[image] == second[image]).all()) for image in range(4)] == [True, True, False, True]
    np.testing.assert_array_equal(cut.run(inputs)["y"], first)


@pytest.mark.parametrize(("slices", "threads"), [(1, 4), (2, 2), (2, 4), (4, 4)])
def test_it_has_the_threads_it_was_given_and_ends_them(slices, threads):
    new_threads = new_thread_counter()
    session = Session("squeezenet@64", threads, batch_of("squeezenet@64", 4), slices=slices)
    assert new_threads(threads - 1) == threads - 1
    session.run(inputs_for(session))
    session.run(inputs_for(session))
    assert new_threads(threads - 1) == threads - 1
    del session
    assert new_threads(0) == 0


@pytest.mark.parametrize(
    ("batch", "slices", "threads", "sentence"),
    [
        (4, 0, 2, "slices must be an integer from 1 on, not 0."),
        (4, -2, 2, "slices must be an integer from 1 on, not -2."),
        (4, 2.0, 2, "slices must be an integer from 1 on, not 2.0."),
        (4, True, 2, "slices must be an integer from 1 on, not True."),
        (4, 2, 3, "3 thread(s) cannot be shared evenly by 2 slices; give a multiple of 2."),
        (4, 2, 1, "1 thread(s) cannot be shared evenly by 2 slices; give a multiple of 2."),
        (
            3,
            2,
            2,
            "the input 'x' of shape [3, 3, 64, 64] cannot be cut evenly into 2 slices; give a batch that is a multiple "
            "of 2.",
        ),
        (
            1,
            2,
            2,
            "the input 'x' of shape [1, 3, 64, 64] cannot be cut evenly into 2 slices; give a batch that is a multiple "
            "of 2.",
        ),
    ],
)
def test_what_cannot_be_shared_evenly_is_one_sentence(batch, slices, threads, sentence):
    with pytest.raises(PowerlabError) as error:
        Session("squeezenet@64", threads, {"x": (batch, 3, 64, 64)}, slices=slices)
    assert str(error.value) == sentence


def test_a_graph_has_its_batch_already():
    maker = GraphMaker()
    graph = maker.graph(maker.conv(maker.input("x", 2, 4, 8, 8), np.ones((4, 4, 1, 1))))
    with pytest.raises(PowerlabError, match="a graph has its batch size already; give a model's name or path to cut"):
        Session(graph, 2, slices=2)


NUMBERS = ", ".join(
    (
        "int64[2] rows = {-1, 8}, int64[2] flat = {-1, 32}, int64[3] back = {-1, 4, 8}, int64[3] wide = {-1, 8, 8}",
        "int64[1] zero = {0}, int64[1] one = {1}, int64[1] minus_1 = {-1}, int64[1] minus_9 = {-9}",
        "int64 zero_0 = {0}, int64 one_0 = {1}",
        "int64[3] three = {0, 1, 2}, int64[4] four = {3, 1, 0, 1}",
        "float[8] scale = {1, 2, 3, 4, 5, 6, 7, 8}, float[8] shift = {8, 7, 6, 5, 4, 3, 2, 1}",
    )
)
"""Small constants for the networks below."""


def model_file(folder, nodes, x="float[6, 4, 8]", y="float[6, 4, 8]", constants=""):
    text = f'<ir_version: 8, opset_import: ["" : 17]> net ({x} x) => ({y} y) <{constants}> {{ {nodes} }}'
    path = folder / "net.onnx"
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    return path


@pytest.mark.parametrize(
    ("nodes", "y", "named"),
    [
        ("y = Softmax <axis = 0> (x)", "float[6, 4, 8]", "Softmax node 'y' may mix the images"),
        (
            "a = Transpose <perm = [1, 0, 2]> (x)  y = Reshape (a, rows)",
            "float[24, 8]",
            "Reshape node 'y' may mix the images",
        ),
        ("a = Sigmoid (x)  y = Concat <axis = 0> (a, x)", "float[12, 4, 8]", "Concat node 'y' may mix the images"),
        (
            "y = Slice (x, minus_1, minus_9, zero, minus_1)",
            "float[6, 4, 8]",
            "the output 'y' has no images along its first axis",
        ),
        ("y = CumSum (x, zero_0)", "float[6, 4, 8]", "CumSum node 'y' may mix the images"),
        ("y = Gather <axis = 0> (x, three)", "float[3, 4, 8]", "the output 'y' has no images along its first axis"),
        ("a = ReduceMean <axes = [0]> (x)  y = Sub (x, a)", "float[6, 4, 8]", "Reduce node 'a' may mix the images"),
        (
            "a = Transpose <perm = [1, 0, 2]> (x)  b = Transpose <perm = [1, 2, 0]> (x)  c = MatMul (a, b)  "
            "y = Transpose <perm = [1, 2, 0]> (c)",
            "float[4, 8, 4]",
            "the output 'y' has no images along its first axis",
        ),
        ("y = Transpose <perm = [1, 0, 2]> (x)", "float[4, 6, 8]", "the output 'y' has no images along its first axis"),
        (
            "a = Transpose <perm = [1, 0, 2]> (x)  b = Softmax <axis = 1> (a)  y = Transpose <perm = [1, 0, 2]> (b)",
            "float[6, 4, 8]",
            "Softmax node 'b' may mix the images",
        ),
    ],
)
def test_a_network_that_mixes_its_images_is_refused(tmp_path, nodes, y, named):
    path = model_file(tmp_path, nodes, y=y, constants=NUMBERS)
    Session(path, 2)
    with pytest.raises(PowerlabError) as error:
        Session(path, 2, slices=2)
    assert str(error.value).startswith(named)
    assert str(error.value).endswith(("run without slices.", "run it without."))


def test_a_network_that_runs_along_its_first_axis_is_refused(tmp_path):
    """Its sequences lie along the second one, so that slices would be pieces of time."""
    path = tmp_path / "lstm.onnx"
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 14]> net (float[6, 3, 8] x) => (float[6, 1, 3, 4] y) '
        "{ y = LSTM <hidden_size = 4> (x, w, r) }"
    )
    random = np.random.default_rng(0)
    for name, shape in (("w", (1, 16, 8)), ("r", (1, 16, 4))):
        values = random.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    path.write_bytes(model.SerializeToString())
    Session(path, 2)
    with pytest.raises(PowerlabError, match="FusedLstm node 'y' may mix the images of a batch"):
        Session(path, 2, slices=2)


@pytest.mark.parametrize(
    "nodes",
    [
        "a = Softmax <axis = 2> (x)  y = Add (a, x)",
        "a = Transpose <perm = [1, 0, 2]> (x)  b = Tanh (a)  y = Transpose <perm = [1, 0, 2]> (b)",
        "a = Transpose <perm = [1, 2, 0]> (x)  b = Tanh (a)  c = Greater (b, a)  d = Where (c, a, b)  "
        "y = Transpose <perm = [2, 0, 1]> (d)",
        "a = ReduceMean <axes = [1, 2]> (x)  y = Sub (x, a)",
        "a = Gather <axis = 1> (x, four)  b = Slice (a, one, minus_1, one)  y = Concat <axis = 1> (b, b)",
        "a = Transpose <perm = [0, 2, 1]> (x)  b = MatMul (x, a)  c = Softmax <axis = -1> (b)  y = MatMul (c, x)",
        "y = LayerNormalization <axis = -1> (x, scale, shift)",
        "a = CumSum (x, one_0)  y = Abs (a)",
        "a = Reshape (x, flat)  b = Sigmoid (a)  y = Reshape (b, back)",
        "a = Reshape (x, flat)  b = Concat <axis = 1> (a, a)  c = Softmax <axis = 1> (b)  y = Reshape (c, wide)",
    ],
)
def test_a_network_that_keeps_them_apart_gives_the_same_bits(tmp_path, nodes):
    y = "float[6, 8, 8]" if "wide" in nodes else "float[6, 4, 8]"
    path = model_file(tmp_path, nodes, y=y, constants=NUMBERS)
    whole, cut = Session(path, 3), Session(path, 3, slices=3)
    inputs = inputs_for(whole)
    np.testing.assert_array_equal(cut.run(inputs)["y"], whole.run(inputs)["y"])


def test_whole_numbers_are_cut_and_a_slice_that_cannot_compute_names_its_node(tmp_path):
    nodes = "y = Div (x, x)"
    path = model_file(tmp_path, nodes, x="int64[6, 4]", y="int64[6, 4]")
    cut = Session(path, 3, slices=3)
    x = np.arange(1, 25).reshape(6, 4)
    np.testing.assert_array_equal(cut.run({"x": x})["y"], np.ones((6, 4), np.int64))
    x[5, 3] = 0
    with pytest.raises(PowerlabError, match="the node 'y' divides an integer by 0"):
        cut.run({"x": x})
    x[5, 3] = 2
    np.testing.assert_array_equal(cut.run({"x": x})["y"], np.ones((6, 4), np.int64))


def test_the_profile_and_repeated_steps_are_those_of_a_slice():
    whole, cut = whole_and_cut("squeezenet@64", 4, 2, 2)
    inputs = inputs_for(cut)
    profile = cut.profile(inputs)
    assert [(kernel, node) for kernel, node, _ in profile] == cut.steps()
    assert sum(duration_ns for _, _, duration_ns in profile) > 0
    assert len(cut.work) == len(cut.choices) == len(profile)
    assert sum(work.flops for work in cut.work) == sum(work.flops for work in whole.work) / 2
    assert cut.repeat(inputs, 0, len(profile), 3) > 0
    with pytest.raises(ValueError, match="no such steps"):
        cut.repeat(inputs, 0, 10**6, 1)
    np.testing.assert_array_equal(cut.run(inputs)["y"], whole.run(inputs)["y"])


def test_threads_may_share_a_session():
    whole, cut = whole_and_cut("squeezenet@64", 4, 2, 2)
    images = [inputs_for(whole, seed) for seed in range(3)]
    expected = [whole.run(inputs)["y"] for inputs in images]
    with ThreadPoolExecutor(3) as callers:
        found = list(callers.map(lambda number: cut.run(images[number])["y"], [0, 1, 2] * 5))
    for number, value in enumerate(found):
        np.testing.assert_array_equal(value, expected[number % 3])


def test_plans_of_one_program_share_what_is_constant(monkeypatch):
    """However their arrays lie: those that no plan could keep as they are, are copied once for all."""
    native = native_engine()
    kept: list[list[int]] = []

    class Plan:
        def __init__(self, **_sizes):
            kept.append([])
            self.own = kept[-1]

        def loop(self, **_steps):
            """Take the loop."""

        def add(self, **_step):
            """Take a step."""

        def add_constant(self, values):
            self.own.append(values.ctypes.data)
            return len(self.own) - 1

    others = {name: getattr(native, name) for name in ("Step", "View", "Place", "Part", "Space", "PackedWeights")}
    monkeypatch.setattr("powerlab.engine.runtime.plan.native_engine", lambda: SimpleNamespace(Plan=Plan, **others))
    program = lower(optimise(load_graph("mobilenetv2@64")), choose_tier(), 1)
    build_plans(program, choose_tier(), [None] * 3)
    assert len(kept[0]) > 50
    assert kept[0] == kept[1] == kept[2]
    assert all(address % 64 == 0 for address in kept[0]), "a plan copies what lies otherwise"


def test_a_fault_in_one_slice_is_raised_when_all_have_ended():
    session = Session("squeezenet@64", 2, batch_of("squeezenet@64", 4), slices=2)
    plan = session._model._plan
    assert isinstance(plan, SlicedPlan)
    inputs = inputs_for(session)
    expected = session.run(inputs)["y"]
    whole = [np.ascontiguousarray(inputs["x"])]
    plans, parts, outputs = plan._cut(whole, [np.empty((4, 1000), np.float32)])
    with pytest.raises(ValueError, match="too few inputs"):
        plan._group.run(plans, [parts[0], []], outputs)
    with pytest.raises(ValueError, match="as many plans as it was made for"):
        plan._group.run(plans[:1], parts[:1], outputs[:1])
    np.testing.assert_array_equal(session.run(inputs)["y"], expected)
