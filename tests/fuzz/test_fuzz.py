"""The bounded form of ``make fuzz``: the kept corpus and some hundred changed models, and a fuzzer that does find."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest
from hostile_models import one_node
from onnx import TensorProto, helper

from fuzz import target
from fuzz.edges import Edges
from fuzz.mutate import MAX_BYTES, mutated
from powerlab.engine import Session
from powerlab.engine.ops import SUPPORTED

pytestmark = pytest.mark.campaign(minutes=1)

HERE = Path(__file__).parent
CORPUS = [path.read_bytes() for path in sorted((HERE / "corpus").iterdir())]
RUNS = 700


def test_the_corpus_and_changed_models_end_well(tmp_path):
    shutil.copytree(HERE / "corpus", tmp_path / "corpus")
    (tmp_path / "findings").mkdir()
    path = os.pathsep.join([str(HERE.parent / name) for name in ("", "support", "engine")])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-X", "faulthandler", "-m", "fuzz.worker", tmp_path, "1", "3600", str(RUNS)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    said = [path.read_text() for path in (tmp_path / "findings").glob("*.txt")]
    assert done.returncode == 0, done.stderr[-3000:]
    assert not said, "\n".join(said)[-3000:]
    assert f"done: {len(CORPUS) + RUNS} runs" in (tmp_path / "log").read_text()


def test_the_corpus_holds_most_operators_and_is_small():
    models = [onnx.ModelProto.FromString(data) for data in CORPUS if is_model(data)]
    missing = SUPPORTED - {node.op_type for model in models for node in model.graph.node}
    assert len(missing) < len(SUPPORTED) / 4, missing
    assert max(map(len, CORPUS)) <= MAX_BYTES
    assert sum(map(len, CORPUS)) < 400_000


def is_model(data):
    try:
        onnx.ModelProto.FromString(data)
    except Exception:
        return False
    return True


def test_changes_are_many_and_mostly_still_models():
    random = Random(1)
    data = one_node("Conv", ("x", "w"), constants={"w": np.ones((4, 4, 3, 3), np.float32)})
    changed = [mutated(data, CORPUS, random) for _ in range(300)]
    assert len(set(changed)) > 200
    assert sum(map(is_model, changed)) > 200


def test_another_seed_is_another_run_and_the_same_seed_the_same():
    data = one_node("Relu")
    first, second, third = ([mutated(data, CORPUS, random) for _ in range(20)] for random in map(Random, (1, 1, 2)))
    assert first == second != third


def test_edges_tell_ways_apart():
    edges = Edges()
    for name, new in (("Relu", True), ("Relu", False), ("Sigmoid", True), ("Sigmoid", False)):
        with edges:
            target.attempt(one_node(name))
        assert (edges.keep_new() > 0) == new


@pytest.fixture
def relu():
    return one_node("Relu")


def test_a_wrong_answer_is_a_finding(monkeypatch, relu):
    run = Session.run
    monkeypatch.setattr(Session, "run", lambda self, inputs: {n: v + 0.1 for n, v in run(self, inputs).items()})
    with pytest.raises(target.FindingError, match="away from the reference"):
        target.attempt(relu)


@pytest.mark.parametrize(("added", "is_finding"), [(0.0, False), (2e-7, False), (1e-3, True)])
def test_what_rounding_leaves_of_a_difference_is_none(monkeypatch, added, is_finding):
    """log(exp(x)) - x is 0, or some 1e-8 that no two programs agree on."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy")
    nodes = [
        helper.make_node("Exp", ["x"], ["grown"]),
        helper.make_node("Log", ["grown"], ["back"]),
        helper.make_node("Sub", ["back", "x"], ["y"]),
    ]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 13)])
    monkeypatch.setattr(target, "JUDGE", lambda data, inputs: {"y": np.full((1, 4), 1e-8 + added, np.float32)})
    with pytest.raises(target.FindingError) if is_finding else nullcontext():
        target.attempt(model.SerializeToString())


def test_an_answer_that_depends_on_threads_is_a_finding(monkeypatch, relu):
    run = Session.run
    monkeypatch.setattr(
        Session, "run", lambda self, inputs: {n: v + 1e-6 * (self.threads > 1) for n, v in run(self, inputs).items()}
    )
    with pytest.raises(target.FindingError, match="with 3 threads"):
        target.attempt(relu)


def test_an_answer_that_only_onnx_runtime_denies_is_a_finding(monkeypatch, relu):
    monkeypatch.setattr(target, "JUDGE", lambda data, inputs: {"y": np.zeros((1, 4, 9, 9), np.float32)})
    with pytest.raises(target.FindingError, match="away from ONNX Runtime"):
        target.attempt(relu)


def test_a_sentence_of_two_lines_is_a_finding(monkeypatch, relu):
    def refuse(*_):
        raise target.PowerlabError("first\nsecond.")

    monkeypatch.setattr(target, "parse", refuse)
    with pytest.raises(target.FindingError, match="no sentence"):
        target.attempt(relu)


def test_another_exception_is_one(monkeypatch, relu):
    monkeypatch.setattr(target, "parse", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        target.attempt(relu)
