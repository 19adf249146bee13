"""The LSTM kernel through plans: any sizes against numpy in float64, on every tier, the same bits on any threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_native import numpy_reference
from engine_native.graphs import GraphMaker, run_twice, use_tier
from powerlab.engine import Session
from powerlab.engine.ir.graph import Node, TensorInfo
from powerlab.engine.target.tiers import available_tiers

TIERS = [tier.name for tier in available_tiers()]
TOLERANCE = 1e-5


class Lstm:
    """Random weights, states and inputs of an LSTM, and the graph of one FusedLstm node."""

    def __init__(self, generator, sizes, direction="forward", *, has_bias=True, has_state=False):
        steps, batch, inputs, hidden = sizes
        directions = 2 if direction == "bidirectional" else 1
        self.direction = direction

        def normal(*shape):
            return generator.standard_normal(shape, dtype=np.float32)

        self.inputs = {"x": normal(steps, batch, inputs)}
        self.weights = normal(directions, 4 * hidden, inputs) / np.float32(np.sqrt(inputs))
        self.recurrence = normal(directions, 4 * hidden, hidden) / np.float32(np.sqrt(hidden))
        self.bias = normal(directions, 8 * hidden) if has_bias else None
        state = (directions, batch, hidden)
        self.shapes = ((steps, directions, batch, hidden), state, state)
        if has_state:
            self.inputs |= {"h": normal(*state), "c": normal(*state)}

    def graph(self, names=("y", "yh", "yc")):
        maker = GraphMaker()
        sources = [maker.input(name, *value.shape) for name, value in self.inputs.items()]
        constants = [maker.constant(value) for value in (self.weights, self.recurrence)]
        bias = "" if self.bias is None else maker.constant(self.bias)
        inputs = (sources[0], *constants, bias, *(sources[1:] or ("", "")))
        maker.nodes.append(Node("FusedLstm", "lstm", inputs, names, {"direction": self.direction}))
        named = [(name, shape) for name, shape in zip(names, self.shapes, strict=True) if name]
        maker.tensors |= {name: TensorInfo(name, shape) for name, shape in named}
        return maker.graph(*(name for name, _ in named))

    def expected(self):
        bias = 0 if self.bias is None else self.bias
        return numpy_reference.lstm(
            self.inputs["x"],
            self.weights,
            self.recurrence,
            bias,
            (self.inputs.get("h"), self.inputs.get("c")),
            backwards=self.direction == "reverse",
        )

    def check(self, found):
        for name, value in zip(("y", "yh", "yc"), self.expected(), strict=True):
            np.testing.assert_allclose(found[name], value, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)


@pytest.mark.parametrize("tier", TIERS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_lstm(tier, data):
    sizes = [data.draw(st.integers(1, most)) for most in (7, 14, 40, 70)]
    lstm = Lstm(
        np.random.default_rng(data.draw(st.integers(0, 99))),
        sizes,
        data.draw(st.sampled_from(["forward", "reverse", "bidirectional"])),
        has_bias=data.draw(st.booleans()),
        has_state=data.draw(st.booleans()),
    )
    with use_tier(tier):
        lstm.check(run_twice(lstm.graph(), data.draw(st.integers(1, 3)), **lstm.inputs))


@pytest.mark.parametrize("batch", [1, 2, 8])
def test_many_steps_of_a_real_size(tier, batch):
    lstm = Lstm(np.random.default_rng(3), (64, batch, 96, 128))
    lstm.check(run_twice(lstm.graph(), 2, **lstm.inputs))


@settings(max_examples=25, deadline=None)
@given(st.tuples(st.integers(1, 6), st.integers(1, 14), st.integers(1, 20), st.integers(1, 90)), st.integers(2, 5))
def test_bits_do_not_depend_on_threads(sizes, threads):
    lstm = Lstm(np.random.default_rng(5), sizes, "bidirectional", has_state=True)
    one, many = (Session(lstm.graph(), threads=count).run(lstm.inputs) for count in (1, threads))
    for name, value in one.items():
        np.testing.assert_array_equal(many[name], value)


@pytest.mark.parametrize("names", [("y", "", ""), ("y", "yh", ""), ("y", "", "yc")])
def test_states_that_nobody_wants_are_left_out(names):
    lstm = Lstm(np.random.default_rng(7), (3, 2, 8, 32))
    whole, part = (Session(lstm.graph(wanted)).run(lstm.inputs) for wanted in (("y", "yh", "yc"), names))
    assert list(part) == [name for name in names if name]
    for name, value in part.items():
        np.testing.assert_array_equal(value, whole[name])


def test_steps_repeated_by_themselves_leave_the_same_result():
    lstm = Lstm(np.random.default_rng(9), (5, 3, 8, 20), has_state=True)
    session = Session(lstm.graph(), threads=2)
    first = session.run(lstm.inputs)
    place = next(index for index, (kernel, _) in enumerate(session.steps()) if kernel.startswith("lstm_"))
    assert session.repeat(lstm.inputs, place, place + 1, 3) > 0
    again = session.run(lstm.inputs)
    assert all(np.array_equal(again[name], first[name]) for name in first)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_work_is_counted_apart_for_inputs_and_for_states(direction):
    steps, batch, inputs, hidden = 4, 3, 16, 32
    lstm = Lstm(np.random.default_rng(1), (steps, batch, inputs, hidden), direction)
    session = Session(lstm.graph(), threads=1)
    works = [(kernel.split("_f32")[0], work) for (kernel, _), work in zip(session.steps(), session.work, strict=True)]
    counted = [(kernel, work) for kernel, work in works if work.operator == "FusedLstm"]
    gates = steps * batch * 4 * hidden
    assert [kernel for kernel, _ in counted] == ["conv_direct", "lstm"] * (len(counted) // 2)
    assert [work.flops for _, work in counted] == [2 * gates * inputs, 2 * gates * hidden] * (len(counted) // 2)
    moved = steps * batch * inputs + 4 * hidden * inputs + gates, gates + 4 * hidden**2 + steps * batch * hidden
    assert [work.bytes_moved for _, work in counted[:2]] == [4 * part for part in moved]
    assert len(counted) == (4 if direction == "bidirectional" else 2)
    assert sum(work.flops for _, work in works) == sum(work.flops for _, work in counted)


@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((2, 3, 5), (1, 0, 2)),
        ((2, 3, 4, 5), (0, 2, 1, 3)),
        ((2, 3, 4, 5), (2, 0, 1, 3)),
        ((2, 3, 4, 5), (2, 1, 0, 3)),
        ((3, 2, 5, 1), (1, 0, 2, 3)),
        ((1, 3, 1, 4, 2, 5), (1, 4, 3, 0, 2, 5)),
        ((7, 33), (0, 1)),
    ],
)
@pytest.mark.parametrize("external", [True, False])
def test_transposes_of_whole_rows(tier, maker, shape, order, external):
    x = np.random.default_rng(2).standard_normal(shape, dtype=np.float32)
    source = maker.input("x", *shape)
    if not external:
        source = maker.node("Clamp", (source,), shape, clamp=(-np.inf, np.inf))
    expected = x.transpose(order)
    y = maker.node("Transpose", (source,), expected.shape, perm=order)
    z = maker.node("Clamp", (y,), expected.shape, clamp=(-0.5, 0.5))
    found = run_twice(maker.graph(y, z), 2, x=x)
    np.testing.assert_array_equal(found[y], expected)
    np.testing.assert_array_equal(found[z], expected.clip(-0.5, 0.5))
