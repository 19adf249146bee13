"""``powerlab learn``: steps to an accuracy times the run's energy of a step, or a sentence why there is no figure."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from powerlab.cli import main
from powerlab.cli.stored.local_database import begin
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import WorkloadKind
from powerlab.store import open_store
from recorded_run import recorded_run
from server_examples import capabilities, device
from small_network import write_small_network

BATCH, IMAGES = 8, 96


@dataclass(frozen=True)
class World:
    """A database of runs: one that trained, one that inferred, one of another engine, one flagged; images to learn."""

    database: str
    trained: str
    inferred: str
    other: str
    flagged: str
    images: str


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("learn")
    plan = SweepPlan(models=(str(write_small_network(folder / "small.onnx")),), threads=(1,), batch_sizes=(BATCH,))
    trains = replace(plan, workload=WorkloadKind.TRAIN, optimizers=("adam",))
    found = []
    with closing(open_store(folder / "runs.db")) as store:
        others = ({}, {}, {}, {"sampling_core_share": 0.3})
        for one, more in zip((trains, plan, replace(trains, engines=("torch",)), trains), others, strict=True):
            held = begin(store, device(), capabilities(), one)
            recorded = recorded_run(sweep_id=held.sweep_id, point=one.points()[0], **more)
            held.add(recorded.run, recorded.traces)
            assert held.broken is None
            held.finish(None)
            found.append(recorded.run.id)
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, IMAGES)
    pictures = random.normal(0, 0.1, (IMAGES, 3, 32, 32)).astype(np.float32) + labels[:, None, None, None]
    np.savez(folder / "images.npz", x=pictures, labels=labels)
    return World(str(folder / "runs.db"), *found, str(folder / "images.npz"))


def learn(world: World, run: str, *words: str) -> int:
    given = {"--labelled-images": world.images, "--accuracy": "90%", "--seeds": "3", "--rate": "0.01", "--every": "1"}
    given |= dict(zip(words[::2], words[1::2], strict=True))
    return main(["learn", run, "--from", world.database, "--json", *(word for pair in given.items() for word in pair)])


def test_the_answer_is_the_steps_that_it_takes_times_the_energy_of_a_step(world, capsys):
    assert learn(world, world.trained) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["steps_each"]) == 3
    assert all(1 <= steps < 200 for steps in found["steps_each"])
    steps, step, whole = (found[name] for name in ("steps", "step_energy_j", "energy_j"))
    assert steps["value"] == pytest.approx(np.mean(found["steps_each"]))
    assert whole["value"] == pytest.approx(steps["value"] * step["value"])
    assert whole["provenance"] == step["provenance"]
    relative = (step["high"] - step["value"]) / step["value"], (steps["high"] - steps["value"]) / steps["value"]
    assert whole["high"] / whole["value"] - 1 == pytest.approx(np.hypot(*relative))


def test_seeds_that_do_not_get_there_are_said_and_leave_no_figure(world, capsys):
    assert learn(world, world.trained, "--accuracy", "100", "--most-steps", "1", "--rate", "1e-9") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["steps_each"] == [None, None, None]
    assert found["steps"] is found["energy_j"] is None


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--seeds", "2"), "invalid --seeds 2: give at least 3"),
        (("--accuracy", "101"), "invalid accuracy '101': give at most 100%"),
        (("--accuracy", "much"), "invalid accuracy 'much'"),
        (("--rate", "-1"), "invalid --rate -1"),
        (("--labelled-images", "none.npz"), "none.npz cannot be read"),
    ],
)
def test_bad_words_get_a_sentence(world, capsys, words, sentence):
    assert learn(world, world.trained, *words) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(("which", "sentence"), [("inferred", "infers; "), ("other", "was trained by torch, and ")])
def test_other_runs_are_refused(world, capsys, which, sentence):
    run = getattr(world, which)
    assert learn(world, run) == 2
    assert f"run {run} {sentence}" in capsys.readouterr().err


def test_a_flagged_run_is_said_to_be_one(world, capsys):
    assert learn(world, world.flagged) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["verdict"] == "flagged"
    assert f"run {world.flagged}\n  flagged (sampling-load): " in said.err


def test_labels_that_the_model_has_no_class_for_are_refused(world, capsys, tmp_path: Path):
    with np.load(world.images) as held:
        np.savez(tmp_path / "wrong.npz", x=held["x"], labels=held["labels"] + 1000)
    assert learn(world, world.trained, "--labelled-images", str(tmp_path / "wrong.npz")) == 2
    assert "Traceback" not in capsys.readouterr().err
