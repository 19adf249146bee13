"""Whatever a model asks for, loading it ends in bounded time and memory, with one sentence that names the node."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from engine_models import load_bytes
from hostile_models import HARMLESS, HOSTILE, one_node, ones
from onnx import ModelProto, StringStringEntryProto, TensorProto, helper

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.frontend.load import load_graph

PROGRAM = Path(__file__).parents[1] / "hostile_models.py"


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Return what came of each model, in a process that has little memory and little time."""
    folder = tmp_path_factory.mktemp("hostile")
    done = subprocess.run([sys.executable, PROGRAM, folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_model_is_refused_in_one_sentence(outcomes, name):
    _, sentence = HOSTILE[name]
    said = outcomes[name]
    assert re.search(sentence, said), said[-1500:]
    assert said.endswith("."), said[-1500:]
    assert "\n" not in said
    assert len(said) < 1500


@pytest.mark.parametrize("name", HARMLESS)
def test_a_strange_but_sound_model_is_loaded(outcomes, name):
    assert outcomes[name] == ""


def test_a_file_cut_anywhere_is_refused_or_still_a_model():
    whole = one_node("LeakyRelu", alpha=0.5)
    said = [sentence_about(whole[:end]) for end in range(len(whole))]
    assert all(sentence.endswith(".") for sentence in said if sentence)
    assert sum(map(bool, said)) > len(whole) // 2


def sentence_about(data):
    """Return what the reader says against a file; nothing where it takes it."""
    try:
        load_bytes(data)
    except PowerlabError as error:
        return str(error)
    return ""


def test_an_output_promised_as_another_type_is_what_the_network_makes(tmp_path):
    """Integers take twice the memory of floats: were the promise believed, a run would write past its array."""
    cast = helper.make_node("Cast", ["x"], ["y"], "n", to=TensorProto.UINT64)
    promised = helper.make_tensor_value_info("y", TensorProto.DOUBLE, [3])
    taken = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    model = helper.make_model(helper.make_graph([cast], "g", [taken], [promised]), ir_version=8)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    session = Session(path, threads=1)
    found = session.run({"x": np.array([1.5, 2.5, 7.0], np.float32)})["y"]
    assert session.dtypes["y"] == found.dtype == np.uint64
    assert found.tolist() == [1, 2, 7]


# External data: where a model says its weights are is as hostile as the rest of it.


def with_external_data(folder, location, count=4, dtype=TensorProto.FLOAT, **entries):
    """Write a model whose constant lies in another file, and return its path."""
    tensor = TensorProto(name="c", data_type=dtype, dims=[count], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.append(StringStringEntryProto(key=key, value=value))
    model = ModelProto.FromString(one_node("Add", ("x", "c"), x=(1,), constants={"c": ones(1)}))
    model.graph.initializer[0].CopyFrom(tensor)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture
def folder(tmp_path):
    """A folder for a model with all ways to lead out of it, beside a secret."""
    (tmp_path / "secret").write_bytes(bytes(64))
    inside = tmp_path / "models"
    inside.mkdir()
    (inside / "data").write_bytes(bytes(64))
    (inside / "link").symlink_to("../secret")
    (inside / "up").symlink_to("..")
    (inside / "circle").symlink_to("circle")
    (inside / "zeros").symlink_to("/dev/zero")
    (inside / "inner").symlink_to("data")
    (inside / "nothing").symlink_to("gone")
    os.mkfifo(inside / "pipe")
    return inside


OUTSIDE, MISSING = "outside the model's folder, which is refused", "which is missing beside the model"


@pytest.mark.parametrize(
    ("location", "entries", "sentence"),
    [
        ("../secret", {}, OUTSIDE),
        ("/etc/hostname", {}, OUTSIDE),
        ("up/secret", {}, OUTSIDE),
        ("link", {}, OUTSIDE),
        ("zeros", {}, OUTSIDE),
        ("sub/../../secret", {}, OUTSIDE),
        ("../models/../secret", {}, OUTSIDE),
        ("~/secret", {}, MISSING),
        ("circle", {}, MISSING),
        ("nothing", {}, MISSING),
        ("pipe", {}, MISSING),
        (".", {}, MISSING),
        ("n" * 5000, {}, MISSING),
        ("data/data", {}, MISSING),
        ("data\0", {}, "names none"),
        ("", {}, "names none"),
        ("data", {"offset": "49"}, "reaches past the end of 'data'"),
        ("data", {"offset": str(2**63 - 1)}, "reaches past the end of 'data'"),
        ("data", {"offset": "-1"}, "reaches past the end of 'data'"),
        ("data", {"offset": "9" * 6000}, "has the offset '9.*', which is not an integer"),
        ("data", {"offset": "1e1"}, "has the offset '1e1', which is not an integer"),
        ("data", {"offset": "\u0664"}, "which is not an integer"),
        ("data", {"length": "17"}, "holds 4.25 values"),
        ("data", {"length": "-16"}, "holds -4 values"),
        ("data", {"length": "all"}, "has the length 'all', which is not an integer"),
    ],
)
def test_external_data_that_is_elsewhere_or_no_data_is_refused(folder, location, entries, sentence):
    with pytest.raises(PowerlabError, match=sentence) as caught:
        load_graph(with_external_data(folder, location, **entries))
    assert "the tensor 'c'" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("location", ["data", "inner", "./data", "../models/data"])
def test_external_data_beside_the_model_is_read(folder, location):
    graph = load_graph(with_external_data(folder, location, length="16", offset="48"))
    assert graph.constants["c"].tolist() == [0, 0, 0, 0]


def test_external_data_may_be_as_many_as_fit_and_no_more(folder):
    with pytest.raises(PowerlabError, match="reaches past the end"):
        load_graph(with_external_data(folder, "data", count=17))
    assert load_graph(with_external_data(folder, "data", count=16)).constants["c"].size == 16


def test_data_of_more_than_memory_holds_is_not_read(folder, monkeypatch):
    """A file with holes takes no room on the disk, but all of it in memory."""
    with (folder / "holes").open("wb") as file:
        file.truncate(2**33)
    graph = load_graph(with_external_data(folder, "holes", count=2**30))
    monkeypatch.setattr("powerlab.engine.runtime.memory.available_bytes", lambda: 2**31)
    with pytest.raises(PowerlabError, match=r"needs 4 GiB for one tensor, and 2 GiB are left"):
        _ = graph.constants["c"]
    path = with_external_data(folder, "holes", count=2**30)
    with pytest.raises(PowerlabError, match=r"needs 4 GiB for one tensor, and 2 GiB are left"):
        Session(path, threads=1)
