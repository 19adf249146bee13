"""Tuning: who wins, what is kept, and that a session takes it without another result."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine_native.graphs import GraphMaker
from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.codegen.convolutions.algorithms.table import ALGORITHMS
from powerlab.engine.codegen.convolutions.choosing import by_cost
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.program.choice import Choice
from powerlab.engine.target.machine import Machine, this_machine
from powerlab.engine.target.tiers import Tier, choose_tier
from powerlab.engine.tuning.choosing import by_tuning
from powerlab.engine.tuning.kept import Place, Tuned, Tunings, keep_tunings, this_place, tuning_file
from powerlab.engine.tuning.models import model_shapes, tune_model
from powerlab.engine.tuning.timer import measured_ns
from powerlab.engine.tuning.tuner import candidates, tune, winner

AVX512 = Tier("avx512", 16, 4, 6)
MACHINE = Machine(tier=AVX512, threads=2)
PLACE = Place(processor="one", clock_limits_khz=(), tier="avx512", kernels="abc")
SHAPE = ConvShape(images=1, inputs=128, outputs=128, kernel=(3, 3), pads=(1, 1), in_size=(14, 14), size=(14, 14))


def fixed_timer(ns_of):
    """A timer that says of each choice what ``ns_of`` does, in five rounds."""
    return lambda shape, choices, machine: np.tile([float(ns_of(choice)) for choice in choices], (5, 1))


def prefers(algorithm: str):
    return fixed_timer(lambda choice: 50 if choice.algorithm == algorithm else 100)


def alike(shape, choices, machine):
    return np.full((5, len(choices)), 100.0)


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path))
    return tmp_path


def test_the_first_candidate_is_the_models_choice():
    assert candidates(SHAPE, MACHINE)[0] == by_cost(MACHINE)(SHAPE)
    assert len(set(candidates(SHAPE, MACHINE))) == len(candidates(SHAPE, MACHINE)) > 1


def test_with_an_algorithm_given_no_other_is_tried():
    for name in ("direct", "winograd2"):
        assert {choice.algorithm for choice in candidates(SHAPE, MACHINE, name)} == {name}


def test_an_algorithm_that_does_not_exist_any_more_binds_nobody():
    assert candidates(SHAPE, MACHINE, "magic") == candidates(SHAPE, MACHINE)


def test_the_fastest_wins():
    verdict = tune(SHAPE, MACHINE, prefers("direct"))
    assert verdict.expected.algorithm.startswith("winograd")
    assert verdict.choice.algorithm == "direct"
    assert verdict.gain == pytest.approx(0.5)
    assert verdict.expected_ns == 100


def test_who_was_only_lucky_does_not_win():
    rounds = iter([50.0])

    def lucky_once(shape, choices, machine):
        return np.tile([100.0, *[next(rounds, 100.0)] * (len(choices) - 1)], (5, 1))

    verdict = tune(SHAPE, MACHINE, lucky_once)
    assert verdict.choice == verdict.expected
    assert verdict.gain == 1


def test_among_equals_the_model_keeps_its_choice():
    verdict = tune(SHAPE, MACHINE, alike)
    assert verdict.choice == verdict.expected
    assert verdict.gain == 1


def test_less_than_a_percent_is_no_reason():
    assert winner(np.tile([100.0, 99.5], (9, 1))) == (0, 1.0)
    assert winner(np.tile([100.0, 98.0], (9, 1)))[0] == 1


@given(st.lists(st.floats(0.5, 1.5), min_size=5, max_size=15))
def test_who_does_not_win_most_rounds_does_not_win(ratios):
    times = np.column_stack([np.ones(len(ratios)), ratios])
    if sum(ratio < 1 for ratio in ratios) < 0.75 * len(ratios):
        assert winner(times) == (0, 1.0)


def test_a_wide_spread_is_no_reason():
    ratios = np.array([0.6, 0.7, 0.8, 0.97, 0.98, 0.99, 0.99])
    assert winner(np.column_stack([np.ones(7), ratios])) == (0, 1.0)
    assert winner(np.column_stack([np.ones(7), np.full(7, 0.97)]))[0] == 1


def test_a_machine_that_slows_down_between_rounds_does_not_decide():
    slowing = np.array([[100.0, 90.0], [200.0, 180.0], [400.0, 360.0]])
    assert winner(slowing) == (1, pytest.approx(0.9))


def two_layers() -> GraphMaker:
    maker = GraphMaker()
    y = maker.input("x", 1, 32, 30, 30)
    for _ in range(2):
        y = maker.conv(y, np.random.default_rng(0).standard_normal((32, 32, 3, 3)), pads=(1, 1, 1, 1))
    maker.output = y
    return maker


def test_each_distinct_shape_is_tuned_once():
    maker = two_layers()
    graph = maker.graph(maker.output)
    assert sorted(model_shapes(graph).values()) == [1, 1]  # the first one's input comes from outside
    found = list(tune_model(graph, MACHINE, Tunings(place=PLACE), alike))
    assert [one.shape for one in found] == list(model_shapes(graph))
    assert len(found[-1].tunings.shapes) == 2


def test_a_second_number_of_threads_keeps_the_algorithm():
    maker = two_layers()
    graph = maker.graph(maker.output)
    *_, last = tune_model(graph, MACHINE, Tunings(place=PLACE), prefers("winograd4"))
    again = list(tune_model(graph, replace(MACHINE, threads=1), last.tunings, prefers("winograd6")))
    assert {one.verdict.choice.algorithm for one in again} == {"winograd4"}
    assert all(set(tuned.cuts) == {1, 2} for tuned in again[-1].tunings.shapes)


def test_the_same_number_of_threads_may_think_again():
    maker = two_layers()
    graph = maker.graph(maker.output)
    *_, last = tune_model(graph, MACHINE, Tunings(place=PLACE), prefers("direct"))
    again = list(tune_model(graph, MACHINE, last.tunings, prefers("winograd2")))
    assert {one.verdict.choice.algorithm for one in again} == {"winograd2"}


def kept(choice: Choice, threads: int = 2) -> Tunings:
    return Tunings(place=PLACE, shapes=(Tuned(shape=SHAPE, algorithm=choice.algorithm, cuts={threads: choice}),))


def test_what_was_tuned_is_taken():
    for choice in candidates(SHAPE, MACHINE):
        assert by_tuning(kept(choice), MACHINE)(SHAPE) == choice


def test_other_shapes_are_left_to_the_model():
    other = replace(SHAPE, images=2)
    choice = candidates(SHAPE, MACHINE)[-1]
    assert by_tuning(kept(choice), MACHINE)(other) == by_cost(MACHINE)(other)


def test_another_number_of_threads_takes_the_algorithm():
    choice = next(choice for choice in candidates(SHAPE, MACHINE) if choice.algorithm == "direct")
    four = replace(MACHINE, threads=4)
    found = by_tuning(kept(choice), four)(SHAPE)
    assert found.algorithm == "direct"
    assert found in ALGORITHMS["direct"].candidates(SHAPE, four)


@pytest.mark.parametrize(
    "wrong", [{"chunk_blocks": 0}, {"chunk_tiles": -1}, {"channel_split": 0}, {"channel_split": 7}, {"tile_blocks": 99}]
)
def test_what_is_no_candidate_is_not_taken(wrong):
    choice = next(choice for choice in candidates(SHAPE, MACHINE) if choice.algorithm == "direct")
    found = by_tuning(kept(replace(choice, **wrong)), MACHINE)(SHAPE)
    assert found in ALGORITHMS["direct"].candidates(SHAPE, MACHINE)


@pytest.mark.parametrize("name", ["magic", "depthwise"])
def test_an_algorithm_that_cannot_is_not_taken(name):
    assert by_tuning(kept(Choice(algorithm=name)), MACHINE)(SHAPE) == by_cost(MACHINE)(SHAPE)


def families(session: Session) -> set[str]:
    return {choice.algorithm for choice in session.choices if choice is not None}


def test_a_session_takes_what_was_tuned_unless_told_not_to(state):
    maker = two_layers()
    graph, tier = maker.graph(maker.output), choose_tier()
    expected = families(Session(graph, threads=2))
    other = "winograd4" if expected != {"winograd4"} else "winograd6"
    *_, last = tune_model(graph, this_machine(tier, 2), Tunings(place=this_place(tier)), prefers(other))
    keep_tunings(last.tunings)
    tuned = Session(graph, threads=2)
    assert families(tuned) == {other}
    assert families(Session(graph, threads=2, tuned=False)) == expected
    x = {"x": np.random.default_rng(1).standard_normal((1, 32, 30, 30), dtype=np.float32)}
    out = tuned.run(x)[maker.output]
    np.testing.assert_array_equal(Session(graph, threads=1).run(x)[maker.output], out)
    np.testing.assert_array_equal(Session(graph, threads=3).run(x)[maker.output], out)
    untuned = Session(graph, threads=2, tuned=False).run(x)[maker.output]
    np.testing.assert_allclose(out, untuned, atol=1e-3 * np.abs(untuned).max())


def test_a_damaged_file_stops_one_session_with_one_sentence(state):
    maker = two_layers()
    graph = maker.graph(maker.output)
    tuning_file().write_text("{")
    with pytest.raises(PowerlabError, match=r"engine-tuning\.json was damaged"):
        Session(graph)
    Session(graph)


TIMED = [
    replace(SHAPE, in_size=(9, 9), size=(9, 9)),
    replace(SHAPE, in_size=(9, 9), size=(9, 9), residual=True, images=2),
    ConvShape(
        images=1, inputs=3, outputs=16, kernel=(7, 7), strides=(2, 2), pads=(3, 3), in_size=(17, 17), size=(9, 9)
    ),
    ConvShape(images=1, inputs=32, outputs=32, kernel=(1, 1), in_size=(7, 7), size=(7, 7), residual=True, flat=True),
    ConvShape(images=1, inputs=40, outputs=32, kernel=(1, 1), in_size=(7, 7), size=(7, 7), preactivated=True),
    ConvShape(images=1, inputs=32, outputs=32, groups=32, kernel=(3, 3), pads=(1, 1), in_size=(7, 7), size=(7, 7)),
    ConvShape(images=1, inputs=32, outputs=32, groups=4, kernel=(3, 3), pads=(1, 1), in_size=(7, 7), size=(7, 7)),
]


@pytest.mark.parametrize("shape", [*TIMED, *(replace(shape, from_outside=True) for shape in TIMED)])
@pytest.mark.parametrize("threads", [1, 2])
def test_every_shape_can_be_timed(shape, threads, monkeypatch):
    monkeypatch.setattr("powerlab.engine.tuning.timer._MOST_BYTES", 1 << 16)
    monkeypatch.setattr("powerlab.engine.tuning.timer._ENOUGH_NS", 1)
    machine = this_machine(choose_tier(), threads)
    choices = candidates(shape, machine)
    times = measured_ns(shape, choices, machine)
    assert times.shape[1] == len(choices)
    assert times.shape[0] >= 5
    assert times.min() > 0
