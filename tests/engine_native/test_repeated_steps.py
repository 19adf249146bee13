"""Steps of a plan repeated by themselves, what they have to do, and what the processor can do at most."""

import math

import numpy as np
import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.codegen.work import nodes_behind
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.ir.statistics import mac_count
from powerlab.engine.passes import optimise
from powerlab.engine.target.ceilings import measure_ceilings
from small_network import NODES, write_small_network


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    return load_graph(str(write_small_network(tmp_path_factory.mktemp("network") / "small.onnx")), batch_size=2)


@pytest.fixture
def session(loaded):
    return Session(optimise(loaded), threads=2)


@pytest.fixture
def inputs(session):
    return {"x": np.random.default_rng(1).standard_normal(session.inputs["x"], dtype=np.float32)}


def work_of(session, operator):
    return next(work for work in session.work if work.operator == operator)


def test_every_step_can_be_repeated_once_those_before_it_have_run(session, inputs):
    for step in range(len(session.steps())):
        session.repeat(inputs, 0, step + 1, 1)
        assert session.repeat(inputs, step, step + 1, 20) > 0


def test_a_run_after_repetitions_gives_what_a_run_before_them_gave(session, inputs):
    before = session.run(inputs)["y"]
    for step in reversed(range(len(session.steps()))):
        session.repeat(inputs, step, step + 1, 3)
    np.testing.assert_array_equal(session.run(inputs)["y"], before)


def test_more_repetitions_take_longer(session, inputs):
    once = min(session.repeat(inputs, 0, len(session.steps()), 1) for _ in range(5))
    assert session.repeat(inputs, 0, len(session.steps()), 200) > once


@pytest.mark.parametrize(("first", "last", "times"), [(-1, 1, 1), (0, 0, 1), (3, 2, 1), (0, 99, 1), (0, 1, 0)])
def test_steps_that_there_are_not_are_refused(session, inputs, first, last, times):
    with pytest.raises(ValueError, match="no such steps"):
        session.repeat(inputs, first, last, times)


def test_inputs_are_checked_as_those_of_a_run_are(session):
    with pytest.raises(PowerlabError, match="the input 'x' is missing"):
        session.repeat({}, 0, 1, 1)


def test_every_step_says_what_it_does(session):
    assert len(session.work) == len(session.steps())
    assert [work.label for work in session.work] == [label for _, label in session.steps()]


def test_the_multiplications_of_all_steps_are_those_of_the_graph(loaded, session):
    multiplying = [work for work in session.work if work.operator in {"FusedConv", "FusedGemm"}]
    assert sum(work.flops for work in multiplying) == 2 * mac_count(optimise(loaded))


def test_a_convolution_moves_its_operands_weights_and_result_once(session):
    work = next(work for work in session.work if work.label == "second")
    planes = 2 * 16 * 32 * 32
    # Input and residual are one tensor here, which counts once; a bias may be there or not.
    assert 4 * (2 * planes + 16 * 16 * 9) <= work.bytes_moved <= 4 * (2 * planes + 16 * 16 * 9 + 16)
    assert work.flops == 2 * planes * 16 * 9
    assert work.shape == (2, 16, 32, 32)


def test_a_matrix_product_moves_its_operands_weights_and_result_once(session):
    assert work_of(session, "FusedGemm").bytes_moved == 4 * (2 * 16 + 16 * 10 + 10 + 2 * 10)


def test_a_pool_counts_what_it_adds_up(session):
    assert work_of(session, "GlobalAveragePool").flops == 2 * 16 * 32 * 32


def test_what_only_moves_numbers_computes_nothing(session):
    moves = [work for work in session.work if not work.operator]
    assert moves
    assert all(work.flops == 0 and work.bytes_moved > 0 for work in moves)


def test_a_strided_convolution_need_not_read_what_it_steps_over():
    session = Session("resnet50", threads=1)
    shrink = next(
        work for work in session.work if work.operator == "FusedConv" and work.shape == (1, 512, 28, 28)
    )  # 1 x 1, stride 2, from 256 x 56 x 56
    read = shrink.bytes_moved // 4 - 512 * 28 * 28
    assert read < 256 * 56 * 56


def test_every_node_of_the_model_stands_behind_one_step(loaded, session):
    behind = nodes_behind(loaded, session.work)
    assert sorted(name for nodes in behind for name in nodes) == sorted(NODES)
    by_label = {work.label: nodes for work, nodes in zip(session.work, behind, strict=True)}
    assert by_label["first"] == ("first", "norm", "rise")
    assert by_label["second"] == ("second", "join", "rise_again")


@pytest.mark.parametrize("name", ["alexnet", "mobilenetv2"])
def test_no_node_of_a_zoo_model_stands_behind_two_steps(name):
    graph = load_graph(name)
    session = Session(optimise(graph), threads=1)
    names = [node for nodes in nodes_behind(graph, session.work) for node in nodes]
    assert len(names) == len(set(names))


def test_ceilings_are_above_what_a_network_reaches(session, inputs):
    found = measure_ceilings(1)
    assert math.isfinite(found.peak_gflops)
    assert found.peak_gflops > 0.1
    assert found.memory_gb_per_s > 0.01
