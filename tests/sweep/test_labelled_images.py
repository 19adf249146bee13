"""How often each engine and precision is right about labelled images."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from powerlab.analysis.operating_point.bounds import BOUND_KINDS
from powerlab.cli import main
from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.measure.labelled_images import read_labelled_images
from small_network import write_small_network

QUICK = ["--duration", "0.05", "--warm-up", "0", "--idle", "0", "--threads", "1", "--repeats", "3"]
IMAGES, WRONG = 7, 2


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_network(tmp_path_factory.mktemp("network") / "small.onnx", side=8)


@pytest.fixture(scope="module")
def images(network: Path) -> dict[str, np.ndarray]:
    """Images and the classes that the network sees in them, the first ones wrong."""
    x = np.random.default_rng(5).standard_normal((IMAGES, 3, 8, 8), dtype=np.float32)
    (scores,) = Session(network, batch_size=IMAGES).run({"x": x}).values()
    labels = scores.argmax(axis=1)
    labels[:WRONG] = (labels[:WRONG] + 1) % 10
    return {"x": x, "labels": labels}


def written(folder: Path, arrays: dict[str, np.ndarray]) -> Path:
    np.savez(folder / "images.npz", **arrays)
    return folder / "images.npz"


def profile(network: Path, data: Path, *words: str) -> int:
    machine = data.parent / "machine"
    machine.mkdir()
    place = ["--sysroot", str(machine), "--database", "none", "--labelled-images", str(data)]
    return main(["profile", str(network), *place, *QUICK, *words])


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_every_run_says_how_often_its_engine_is_right(tmp_path, capsys, network, images):
    data = written(tmp_path, {"photographs": images["x"], "labels": images["labels"]})
    assert profile(network, data, "--batch", "1,3", "--json") in (0, 1)
    sweep = json.loads(capsys.readouterr().out)
    found = [one for run in sweep["runs"] for one in run["metrics"] if one["name"] == "top1_accuracy_percent"]
    assert len(found) == len(sweep["runs"]) == 6
    assert [one["value"] for one in found] == [pytest.approx(100 * (IMAGES - WRONG) / IMAGES)] * 6
    assert found[0]["low"] == pytest.approx(35.9, abs=0.05)  # Wilson's score for 5 of 7
    assert found[0]["high"] == pytest.approx(91.8, abs=0.05)
    (seen,) = {json.dumps(run["conditions"]["labelled_accuracy"], sort_keys=True) for run in sweep["runs"]}
    assert json.loads(seen) == {
        "images": IMAGES,
        "right": IMAGES - WRONG,
        "sha256": read_labelled_images(data).sha256,
    }


def test_accuracy_is_a_bound_that_fp32_does_not_keep_by_itself():
    assert BOUND_KINDS["accuracy"].metric == "top1_accuracy_percent"
    assert BOUND_KINDS["accuracy"].at_least
    assert not BOUND_KINDS["accuracy"].fp32_keeps


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"x": np.ones((7, 3, 8, 9))}, "in batches of the shape (1, 3, 8, 9), but the model takes (1, 3, 8, 8)"),
        ({"labels": np.full(7, 10)}, "the label 10 is none of the 10 classes"),
        ({"x": np.ones((7, 2)), "z": np.ones((7, 1))}, "in batches of the shape (1, 2)"),
    ],
)
def test_what_the_model_does_not_take_ends_the_sweep_before_it_begins(network, images, changes, sentence, request):
    tmp_path, capsys = request.getfixturevalue("tmp_path"), request.getfixturevalue("capsys")
    assert profile(network, written(tmp_path, {**images, **changes})) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"x": np.ones((2, 3))}, "must hold the images and an array named labels; it holds x."),
        ({"labels": np.ones(2, int)}, "must hold the images and an array named labels; it holds labels."),
        ({"x": np.ones((3, 3)), "labels": np.ones(2, int)}, "numbers for as many images as there are labels, 2; it is"),
        ({"x": np.ones((2, 3)), "labels": np.ones(2)}, "one whole number for each image"),
        ({"x": np.ones((2, 3)), "labels": np.array([0, -1])}, "some below 0"),
        ({"x": np.ones((0, 3)), "labels": np.ones(0, int)}, "one whole number for each image"),
        ({"x": np.full((2, 3), np.nan), "labels": np.ones(2, int)}, "infinite numbers or NaN"),
        ({"x": np.array(["a", "b"]), "labels": np.ones(2, int)}, "must be numbers"),
    ],
)
def test_a_file_that_holds_something_else_is_one_sentence(tmp_path, arrays, sentence):
    with pytest.raises(PowerlabError, match=re.escape(sentence)):
        read_labelled_images(written(tmp_path, arrays))


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 but no more", b"text"])
def test_a_file_that_is_none_is_one_sentence(tmp_path, content):
    path = tmp_path / "images.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PowerlabError, match=r"cannot be read: No such file|is no .npz file of arrays"):
        read_labelled_images(path)
