"""``powerlab models`` and a real server: uploads that are killed, servers that are killed, files that are no good."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_bytes import sha256
from patient_http import http_answer
from powerlab import cli
from powerlab.client import models
from powerlab.client.models import ModelApi
from powerlab.client.transport import Transport
from powerlab.domain.errors import PowerlabError
from small_network import write_small_network

KILLED_AT = 300_000
UPLOAD_AND_DIE = f"""
import os, signal, sys
from pathlib import Path
from powerlab.client import models as model_api
from powerlab.client.transport import Transport
model_api.PART_BYTES = 100_000
def moved(done, total):
    if done >= {KILLED_AT}:
        os.kill(os.getpid(), signal.SIGKILL)
model_api.ModelApi(Transport(sys.argv[1])).upload(Path(sys.argv[2]), "net", moved)
"""


def write_model(path: Path, seed: int, floats: int = 200_000) -> Path:
    """Write a model with as many weights; another seed makes another file."""
    weights = np.random.default_rng(seed).standard_normal((floats // 100, 100)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)],
        "made",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", 100])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["N", floats // 100])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def run(server: Any, *words: str, capsys: Any) -> tuple[int, str, str]:
    status = cli.main(["models", *words, "--server", server.url])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_upload_list_show_download(server: Any, tmp_path: Path, capsys: Any) -> None:
    path = write_small_network(tmp_path / "Small net.onnx")
    key = sha256(path.read_bytes())
    status, out, _ = run(server, "upload", str(path), capsys=capsys)
    assert (status, out.splitlines()[0]) == (0, f"Small-net@sha256:{key}")
    _, out, _ = run(server, "list", "--json", "--name", "Small-net", capsys=capsys)
    assert [one["sha256"] for one in json.loads(out)] == [key]
    _, out, _ = run(server, "list", capsys=capsys)
    assert f"Small-net@sha256:{key}" in out
    for words in ("Small-net", key[:9], f"Small-net@sha256:{key[:5]}", f"sha256:{key}", f"Small-net@sha256:{key}"):
        _, out, err = run(server, "show", words, "--json", capsys=capsys)
        assert json.loads(out)["sha256"] == key, err
    status, _, err = run(server, "show", "nothing-like-it", capsys=capsys)
    assert (status, "no models on the server" in err) == (2, True)
    copy = tmp_path / "copy.onnx"
    copy.with_name("copy.onnx.part").write_bytes(path.read_bytes()[:1000])
    assert run(server, "download", key, "--output", str(copy), capsys=capsys)[0] == 0
    assert copy.read_bytes() == path.read_bytes()
    copy.with_name("copy.onnx.part").write_bytes(b"?" * 1000)
    status, _, err = run(server, "download", key, "--output", str(copy), capsys=capsys)
    assert (status, "download it again" in err) == (2, True)
    assert run(server, "download", key, "--output", str(copy), capsys=capsys)[0] == 0


def test_a_killed_upload_goes_on_where_it_was(server: Any, tmp_path: Path, monkeypatch: Any) -> None:
    path = write_model(tmp_path / "net.onnx", seed=1)
    died = subprocess.run([sys.executable, "-c", UPLOAD_AND_DIE, server.url, str(path)], check=False)
    assert died.returncode == -9
    moves: list[int] = []
    monkeypatch.setattr(models, "PART_BYTES", 100_000)
    record = ModelApi(Transport(server.url)).upload(path, "net", lambda done, _: moves.append(done))
    assert record.complete
    assert moves[0] == KILLED_AT
    again: list[int] = []
    ModelApi(Transport(server.url)).upload(path, "net", lambda done, _: again.append(done))
    assert again == [path.stat().st_size]
    reply = http_answer("GET", f"{server.url}/api/v1/models/{record.sha256}/content")
    assert reply.data == path.read_bytes()


def test_a_server_that_is_killed_meanwhile_costs_a_wait(server: Any, tmp_path: Path, monkeypatch: Any) -> None:
    path = write_model(tmp_path / "net.onnx", seed=2)
    monkeypatch.setattr(models, "PART_BYTES", 100_000)
    starting: list[threading.Thread] = []

    def moved(done: int, _: int) -> None:
        if done >= KILLED_AT and not starting:
            server.kill()
            starting.append(threading.Thread(target=server.start))
            starting[0].start()

    record = ModelApi(Transport(server.url)).upload(path, "net", moved)
    starting[0].join()
    assert record.complete
    reply = http_answer("GET", f"{server.url}/api/v1/models/{record.sha256}/content")
    assert reply.data == path.read_bytes()


def test_a_server_that_stays_away_is_a_sentence(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(models, "_FIRST_WAIT_S", 0.001)
    path = write_small_network(tmp_path / "net.onnx")
    with pytest.raises(PowerlabError, match="no powerlab server answers"):
        ModelApi(Transport("http://127.0.0.1:9")).upload(path, "net", lambda *_: None)


def test_a_file_that_changes_meanwhile_is_a_sentence(server: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(models, "PART_BYTES", 100_000)
    for seed, change, words in ((3, b"", "became shorter"), (4, bytes(900_000), "thrown away")):
        path = write_model(tmp_path / "net.onnx", seed)

        def moved(done: int, _: int, path: Path = path, change: bytes = change) -> None:
            if done == KILLED_AT:
                path.write_bytes(change)

        with pytest.raises(PowerlabError, match=words):
            ModelApi(Transport(server.url)).upload(path, "net", moved)


def test_files_that_are_no_models_are_not_sent(server: Any, tmp_path: Path, capsys: Any) -> None:
    files = {"empty.onnx": b"", "zip.onnx": b"PK\x03\x04 not a model", "half.onnx": b"\x08\x08\x3a\xff\x01abc"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        status, _, err = run(server, "upload", str(tmp_path / name), capsys=capsys)
        assert (status, err.count("\n"), name in err) == (2, 1, True), err
    status, _, err = run(server, "upload", str(tmp_path / "missing.onnx"), capsys=capsys)
    assert (status, "cannot be read" in err) == (2, True)
    status, _, err = run(server, "upload", str(tmp_path), capsys=capsys)
    assert (status, "cannot be read" in err) == (2, True)


def test_weights_in_another_file_are_refused(server: Any, tmp_path: Path, capsys: Any) -> None:
    model = onnx.load(write_small_network(tmp_path / "small.onnx"))
    path = tmp_path / "outside.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    status, _, err = run(server, "upload", str(path), capsys=capsys)
    assert (status, "in another file; save it as one file first" in err) == (2, True), err


def test_a_model_only_other_engines_can_run_is_sent_with_a_remark(server: Any, tmp_path: Path, capsys: Any) -> None:
    node = helper.make_node("Mystery", ["x"], ["y"], domain="somebody.else")
    value = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 4]) for name in "xy"]
    graph = helper.make_graph([node], "made", value[:1], value[1:])
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("somebody.else", 1)]
    path = tmp_path / "mystery.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=sets, ir_version=8).SerializeToString())
    status, out, err = run(server, "upload", str(path), capsys=capsys)
    assert (status, out.startswith("mystery@sha256:")) == (0, True)
    assert "the engine builtin cannot run this model" in err
