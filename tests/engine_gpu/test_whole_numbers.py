"""Token ids, masks and positions on a GPU, which computes with floats: as the processor does, or a sentence."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from engine_models import load_bytes
from onnx import helper, numpy_helper

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.gpu.model import GpuModel
from powerlab.engine.passes import optimise

TOKENS = 12
RANDOM = np.random.default_rng(8)
TABLE = RANDOM.integers(-50, 50, (40, 8)).astype(np.float32)
KINDS = {"ids": np.int64, "more": np.int32, "mask": np.int64, "seen": np.bool_, "x": np.float32}


def cast(source, to, made):
    return helper.make_node("Cast", [source], [made], to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))


def node(operator, inputs, made="y", **attributes):
    return helper.make_node(operator, inputs.split(), [made], **attributes)


def graph_of(nodes, *inputs, size=(2, TOKENS), kind=np.float32, **constants):
    """Return a graph that gives out ``y``."""
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(KINDS[name])), size)
        for name in inputs
    ]
    made = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(kind)), None)
    values = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "test", infos, [made], values)
    return load_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())


def given(graph, **inputs):
    """Return ids of a table of 40 rows, masks, and floats."""
    made = {
        "ids": RANDOM.integers(0, 40, (2, TOKENS)),
        "more": RANDOM.integers(-3, 4, (2, TOKENS), np.int32),
        "mask": RANDOM.integers(0, 2, (2, TOKENS)),
        "seen": RANDOM.integers(0, 2, (2, TOKENS)).astype(np.bool_),
        "x": RANDOM.integers(-9, 10, (2, TOKENS)).astype(np.float32),
    } | inputs
    return {info.name: made[info.name] for info in graph.inputs}


def check(graph, *, half=False, **inputs):
    """Compare the bits with the processor's; what is computed here fits into 16 bits."""
    gpu, run = GpuModel(optimise(graph, for_cores=False), half=half), given(graph, **inputs)
    expected = Session(optimise(graph), 1).run(run)["y"]
    found = gpu.run(run)["y"]
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    gpu.poison()
    np.testing.assert_array_equal(gpu.run(run)["y"], expected)


POSITIONS = [
    node("Equal", "ids padding", "is_padding"),
    node("Not", "is_padding", "is_word"),
    cast("is_word", np.int32, "word"),
    node("CumSum", "word axis", "count"),
    node("Mul", "count word", "counted"),
    cast("counted", np.int64, "wide"),
    node("Add", "wide padding", "position"),
]
"""As RoBERTa's: which word each token is, from 2 on, that of padding being 1."""

CASES = {
    "a mask as it is": ([cast("mask", np.float32, "y")], {}),
    "a mask as truth": (
        [cast("mask", np.bool_, "seen_"), node("Where", "seen_ zero far")],
        {"zero": np.float32(0), "far": np.float32(-60000)},
    ),
    "a mask of booleans": ([node("Not", "seen", "hidden"), cast("hidden", np.float32, "y")], {}),
    "one and not the other": (
        [
            cast("mask", np.bool_, "b"),
            node("And", "seen b", "both"),
            node("Xor", "both b", "one"),
            node("Or", "one both", "any"),
            cast("any", np.float32, "y"),
        ],
        {},
    ),
    "columns of a mask": (
        [
            cast("mask", np.bool_, "b"),
            node("Reshape", "b flat", "row"),
            node("Gather", "row places", "some"),
            node("Transpose", "some", "turned"),
            node("Concat", "turned turned", "twice", axis=0),
            cast("twice", np.float32, "y"),
        ],
        {"flat": np.array([-1]), "places": np.array([[3, 0, -1], [7, 7, 2]])},
    ),
    "positions": ([*POSITIONS, cast("position", np.float32, "y")], {"padding": np.array(1), "axis": np.array(1)}),
    "rows at positions": (
        [*POSITIONS, node("Gather", "table position", "at"), node("Gather", "table ids", "of"), node("Add", "at of")],
        {"padding": np.array(1), "axis": np.array(1), "table": TABLE},
    ),
    "larger and smaller": (
        [
            node("Less", "ids few", "less"),
            node("GreaterOrEqual", "ids few", "rest"),
            node("Greater", "more one", "above"),
            node("LessOrEqual", "more one", "below"),
            *(cast(name, np.float32, f"{name}.f") for name in ("less", "rest", "above", "below")),
            node("Sum", "less.f rest.f above.f", "three"),
            node("Sub", "three below.f"),
        ],
        {"few": np.array(2), "one": np.array(1, np.int32)},
    ),
    "sums and products": (
        [
            node("Equal", "ids few", "same"),
            cast("same", np.int64, "one"),
            node("Sub", "one few", "less"),
            node("Mul", "less less", "squared"),
            node("Max", "squared few", "most"),
            node("Min", "most few", "least"),
            node("Where", "same most least", "chosen"),
            cast("chosen", np.float32, "y"),
        ],
        {"few": np.array(3)},
    ),
}


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_small_whole_numbers_are_computed(case, half):
    nodes, constants = CASES[case]
    read = {name for one in nodes for name in one.input}
    check(graph_of(nodes, *(name for name in KINDS if name in read), **constants), half=half)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize(("exclusive", "reverse"), [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sums_up_to_each_number(axis, exclusive, reverse, half):
    nodes = [node("CumSum", "x axis", exclusive=exclusive, reverse=reverse)]
    check(graph_of(nodes, "x", axis=np.array(axis)), half=half)
    check(graph_of(nodes, "x", size=(3, 4, 5), axis=np.array(axis)), half=half, x=np.ones((3, 4, 5), np.float32))


@pytest.mark.parametrize("half", [False, True])
def test_an_id_too_large_for_floats_is_like_no_small_one(half):
    most = 2**11 - 1 if half else 2**24 - 1
    nodes = [node("Equal", "ids last", "same"), node("Less", "ids last", "less")]
    nodes += [cast("same", np.float32, "a"), cast("less", np.float32, "b"), node("Sub", "a b")]
    values = [most, most + 1, most + 2, 2**31, 2**40 + 1, -most, -most - 2, -(2**62), most - 1, 0, 1, 2**53 + 1]
    check(graph_of(nodes, "ids", last=np.array(most)), half=half, ids=np.array([values, values[::-1]]))


REFUSED = {
    "a constant that floats do not hold": (
        [node("Equal", "ids last", "same"), cast("same", np.float32, "y")],
        {"last": np.array(2**24)},
    ),
    "products of ids and a large number": (
        [
            node("Mul", "ids last", "product"),
            cast("product", np.float32, "p"),
            node("Gather", "table ids", "rows"),
            node("Gather", "rows first", "row", axis=2),
            node("Add", "row p"),
        ],
        {"last": np.array(2**24 - 1), "table": TABLE, "first": np.array(0)},
    ),
    "positions past the table": (
        [*POSITIONS, node("Gather", "table position")],
        {"padding": np.array(1), "axis": np.array(1), "table": TABLE[:TOKENS]},
    ),
    "quotients": (
        [cast("seen", np.int64, "one"), node("Div", "one two", "none"), cast("none", np.float32, "y")],
        {"two": np.array(2)},
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_may_be_too_large_is_refused_by_name(case):
    nodes, constants = REFUSED[case]
    read = {name for one in nodes for name in one.input}
    graph = graph_of(nodes, *(name for name in KINDS if name in read), **constants)
    with pytest.raises(PowerlabError, match="on a GPU the engine computes with floats and small whole numbers alone"):
        GpuModel(optimise(graph, for_cores=False))


ARGUMENTS = [("ArgMax", 0), ("ArgMax", 1), ("ArgMin", 0), ("ArgMin", 1)]


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize(("operator", "last"), ARGUMENTS)
@pytest.mark.parametrize(("axis", "keepdims"), [(0, 1), (1, 0), (-1, 1)])
def test_where_the_largest_number_is_comes_out_as_a_whole_number(operator, last, axis, keepdims, half):
    made = node(operator, "x", axis=axis, keepdims=keepdims, select_last_index=last)
    graph = graph_of([made], "x", size=(3, 5, 4), kind=np.int64)
    check(graph, half=half, x=RANDOM.integers(-2, 3, (3, 5, 4)).astype(np.float32))
    values = RANDOM.integers(-2, 3, (3, 5, 4)).astype(np.float32)
    values[RANDOM.random(values.shape) < 0.3] = np.nan
    check(graph, half=half, x=values)


@pytest.mark.parametrize("half", [False, True])
def test_truth_comes_out_as_truth(half):
    check(graph_of([node("Less", "x zero")], "x", zero=np.float32(0), kind=np.bool_), half=half)


def test_sums_of_ids_do_not_come_out():
    graph = graph_of([node("CumSum", "x axis", "s"), cast("s", np.int64, "y")], "x", axis=np.array(1), kind=np.int64)
    with pytest.raises(PowerlabError, match="on a GPU the engine computes with floats and small whole numbers alone"):
        GpuModel(optimise(graph, for_cores=False))


PICKS = {
    "constants": ([node("GatherElements", "x places", axis=1)], {"places": RANDOM.integers(-TOKENS, TOKENS, (2, 5))}),
    "of another axis": (
        [node("GatherElements", "x places", axis=0)],
        {"places": RANDOM.integers(-2, 2, (3, TOKENS))},
    ),
    "at positions": (
        [*POSITIONS, node("GatherElements", "table position", axis=1)],
        {"padding": np.array(1), "axis": np.array(1), "table": TABLE.reshape(2, -1)},
    ),
    "given": ([node("GatherElements", "table ids", axis=1)], {"table": TABLE.reshape(2, -1)}),
}


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("case", PICKS)
def test_every_number_has_a_place_of_its_own(case, half):
    nodes, constants = PICKS[case]
    read = {name for one in nodes for name in one.input}
    check(graph_of(nodes, *(name for name in KINDS if name in read), **constants), half=half)


def test_places_for_some_of_the_rows_alone_are_refused():
    graph = graph_of([node("GatherElements", "x places", axis=1)], "x", places=np.array([[0, 1]]))
    with pytest.raises(PowerlabError, match="wants places for all of it but along one axis"):
        GpuModel(optimise(graph, for_cores=False))


@pytest.mark.parametrize("operator", ["Gather", "GatherElements"])
@pytest.mark.parametrize("outside", [TOKENS, -TOKENS - 1])
def test_constants_that_pick_outside_are_refused(operator, outside):
    graph = graph_of([node(operator, "x places", axis=1)], "x", places=np.array([[0, outside], [1, 2]]))
    with pytest.raises(PowerlabError, match=f"'places' picks from {TOKENS} rows and holds .*{outside}"):
        GpuModel(optimise(graph, for_cores=False))


BOUNDED = {
    "how many are seen": ([node("CumSum", "mask axis", "count"), cast("count", np.float32, "y")], 2**15, 1),
    "both are seen": (
        [
            node("Unsqueeze", "mask last", "column"),
            node("Unsqueeze", "mask first", "row"),
            node("Mul", "row column", "both"),
            cast("both", np.float32, "y"),
        ],
        255,
        1,
    ),
    "turned ids": ([node("Transpose", "ids", "turned", perm=[1, 0]), node("Gather", "table turned")], 39, 39),
}


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("case", BOUNDED)
def test_runs_may_give_what_stays_small_alone(case, half):
    nodes, most, most_in_16_bits = BOUNDED[case]
    read = {name for one in nodes for name in one.input}
    known = {"axis": np.array(1), "first": np.array([1]), "last": np.array([2]), "table": TABLE}
    graph = graph_of(
        nodes,
        *(name for name in ("ids", "mask") if name in read),
        **{name: value for name, value in known.items() if name in read},
    )
    check(graph, half=half)
    (name,) = (info.name for info in graph.inputs)
    limit = most_in_16_bits if half else most
    gpu = GpuModel(optimise(graph, for_cores=False), half=half)
    gpu.run({name: np.full((2, TOKENS), limit)})
    with pytest.raises(PowerlabError, match=f"{name!r} holds {limit + 1} to {limit + 1}, and this model on a GPU"):
        gpu.run({name: np.full((2, TOKENS), limit + 1)})


def test_ids_are_as_large_as_their_table():
    nodes = [
        node("Gather", "table ids", "rows"),
        node("ArgMax", "ids", "last", axis=1),
        node("Mul", "ids ids", "squared"),
        cast("last", np.float32, "a"),
        cast("squared", np.float32, "b"),
        node("Gather", "rows first", "row", axis=2),
        node("Sub", "row b", "c"),
        node("Add", "c a"),
    ]
    check(graph_of(nodes, "ids", table=TABLE, first=np.array(0)), half=True)


def test_more_tokens_than_floats_of_16_bits_count_are_refused_in_these():
    graph = graph_of(
        [*POSITIONS, cast("position", np.float32, "y")],
        "ids",
        size=(1, 2**11),
        padding=np.array(1),
        axis=np.array(1),
    )
    check(graph, ids=np.full((1, 2**11), 5))
    with pytest.raises(PowerlabError, match="floats and small whole numbers alone"):
        GpuModel(optimise(graph, for_cores=False), half=True)


def test_a_number_for_minus_infinity_is_the_least_of_16_bits():
    nodes = [node("Where", "seen zero far", "hidden"), node("Add", "hidden x")]
    graph = graph_of(nodes, "seen", "x", zero=np.float32(0), far=np.finfo(np.float32).min)
    run = given(graph)
    with warnings.catch_warnings(action="error"):
        found = GpuModel(optimise(graph, for_cores=False), half=True).run(run)["y"]
    np.testing.assert_array_equal(found[run["seen"]], run["x"][run["seen"]])
    np.testing.assert_array_equal(found[~run["seen"]], -65504)
