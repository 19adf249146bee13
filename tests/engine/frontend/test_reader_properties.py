"""Whatever the onnx package writes, the reader reads: nodes, attributes, names, shapes and weights of any model."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from onnx import TensorProto, helper, numpy_helper

from powerlab.engine.frontend.onnx_reader import schema
from powerlab.engine.frontend.onnx_reader.attributes import to_value

WHOLE = st.integers(-(2**63), 2**63 - 1)
SINGLE = st.floats(width=32, allow_nan=False)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)
VALUES = st.one_of(
    WHOLE,
    SINGLE,
    TEXT,
    st.lists(WHOLE, min_size=1, max_size=30),
    st.lists(SINGLE, min_size=1, max_size=30),
    npst.arrays(st.sampled_from([np.float32, np.int64]), npst.array_shapes(max_dims=3, max_side=4)),
)


@settings(max_examples=150, deadline=None)
@given(TEXT, st.lists(TEXT, max_size=4), st.lists(TEXT, min_size=1, max_size=3), st.dictionaries(TEXT, VALUES))
def test_a_node_is_read_with_every_name_and_attribute(name, inputs, outputs, attributes):
    kinds = {
        key: numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for key, value in attributes.items()
    }
    node = helper.make_node("Anything", inputs, outputs, name)
    node.attribute.extend(helper.make_attribute(key, value) for key, value in kinds.items())
    read = schema.decode(schema.NodeMessage, memoryview(node.SerializeToString()))
    assert (read.op_type, read.name) == ("Anything", name)
    assert (list(read.input), list(read.output)) == (inputs, outputs)
    found = {attribute.name: to_value(attribute, None) for attribute in read.attribute}
    assert found.keys() == attributes.keys()
    for key, value in attributes.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(found[key], value)
        else:
            assert found[key] == (tuple(value) if isinstance(value, list) else value)


@st.composite
def chains(draw):
    """Return a model of Identity and Relu nodes in any order in the file, its names, its input's shape and weights."""
    count = draw(st.integers(1, 8))
    names = draw(st.lists(TEXT, min_size=count + 2, max_size=count + 2, unique=True))
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=5)))
    operators = draw(st.lists(st.sampled_from(["Identity", "Relu"]), min_size=count, max_size=count))
    nodes = [
        helper.make_node(operator, [source], [output])
        for operator, source, output in zip(operators, names[:-2], names[1:-1], strict=True)
    ]
    weight = draw(npst.arrays(np.float32, npst.array_shapes(max_dims=3, max_side=3), elements=SINGLE))
    graph = helper.make_graph(
        draw(st.permutations(nodes)),
        draw(TEXT),
        [helper.make_tensor_value_info(names[0], TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(names[-2], TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, names[-1])],
        doc_string=draw(st.text(max_size=50)),
    )
    model = helper.make_model(graph, producer_name=draw(st.text(max_size=9)), ir_version=8)
    return model, names, shape, operators, weight


@settings(max_examples=100, deadline=None)
@given(chains())
def test_a_graph_is_read_with_names_shapes_and_weights_in_an_order_that_runs(chain):
    model, names, shape, operators, weight = chain
    graph = load_bytes(model.SerializeToString())
    assert graph.name == model.graph.name
    assert [(info.name, info.shape) for info in graph.inputs] == [(names[0], shape)]
    assert [(info.name, info.shape) for info in graph.outputs] == [(names[-2], shape)]
    assert [node.op_type for node in graph.nodes] == operators
    assert [node.outputs for node in graph.nodes] == [(name,) for name in names[1:-1]]
    np.testing.assert_array_equal(graph.constants[names[-1]], weight)


@pytest.mark.parametrize("key", ["future_field", "metadata"])
def test_fields_the_reader_does_not_know_are_passed_over(key):
    node = helper.make_node("Relu", ["x"], ["y"])
    if key == "metadata":
        entry = node.metadata_props.add()
        entry.key, entry.value = "made by", "a test"
        data = node.SerializeToString()
    else:
        data = node.SerializeToString() + b"\xfa\x7f\x03abc"  # field 2047, three bytes
    read = schema.decode(schema.NodeMessage, memoryview(data))
    assert (read.op_type, list(read.input), list(read.output)) == ("Relu", ["x"], ["y"])
