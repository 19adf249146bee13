"""Whatever a user gets wrong is one sentence that says how to fix it, and exit code 2."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import numpy as np
import pytest
from onnx import TensorProto, helper

QUICK = ("--duration", "0.05", "--warm-up", "0", "--idle", "0", "--threads", "1")
XAVIER = ("--board", "jetson-agx-xavier")
NOWHERE = "http://127.0.0.1:1"


def one_node_model(operator: str, shape: list[int | str], **attributes: object) -> bytes:
    node = helper.make_node(operator, ["x"], ["y"], name="the_node", **attributes)
    ends = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, shape),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
    ]
    graph = helper.make_graph([node], "graph", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


@pytest.fixture(scope="module")
def bench(shared_powerlab):
    """A folder with every kind of wrong file."""
    home = shared_powerlab.home
    good = one_node_model("Relu", [1, 3, 4, 4])
    for name, content in {
        "text.txt": b"these are words\n",
        "good.onnx": good,
        "truncated.onnx": good[: len(good) // 2],
        "empty.onnx": b"",
        "determinant.onnx": one_node_model("Det", [4, 4]),
        "dynamic.onnx": one_node_model("Relu", ["batch", 3, "height", "width"]),
    }.items():
        (home / name).write_bytes(content)
    (home / "folder").mkdir()
    (home / "machine").mkdir()
    np.savez(home / "right.npz", x=np.zeros((1, 3, 4, 4), np.float32))
    np.savez(home / "name.npz", z=np.zeros((1, 3, 4, 4), np.float32))
    np.savez(home / "shape.npz", x=np.zeros((1, 3, 4, 5), np.float32))
    return shared_powerlab


@pytest.fixture(scope="module")
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def refusal(powerlab, *words: object) -> str:
    """The sentence of a command that is refused."""
    done = powerlab(*map(str, words))
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (sentence,) = done.stderr.splitlines()
    assert re.fullmatch(r"powerlab: \S.*\.", sentence), sentence
    assert "Traceback" not in sentence
    return sentence


MODELS = [
    ("text.txt", ["no ONNX file", "export or download"]),
    ("truncated.onnx", ["not a whole one", "export or download"]),
    ("empty.onnx", ["no ONNX graph", "give a file"]),
    ("determinant.onnx", ["Det node 'the_node'", "`powerlab engine operators`"]),
    ("resnet51", ["'resnet51'", "alexnet, densenet121, "]),
    ("missing.onnx", ["missing.onnx", "give the path of an ONNX file"]),
    ("folder/", ["folder", "give the path of an ONNX file"]),
]


@pytest.mark.parametrize(("model", "words"), MODELS)
def test_a_model_that_cannot_be_run(bench, model, words):
    run = refusal(bench, "engine", "run", model, "--input", "right.npz", "--output", "out.npz")
    sweep = refusal(bench, "profile", model, "--sysroot", "machine", "--database", "none", *QUICK)
    assert [word for word in words if word not in run] == []
    assert sweep == run


def test_an_open_size_is_named_with_the_way_to_give_it(bench):
    sentence = refusal(bench, "engine", "info", "dynamic.onnx")
    assert "input 'x'" in sentence
    assert "'batch'" in sentence
    assert "--input-shape x=" in sentence
    sentence = refusal(bench, "profile", "dynamic.onnx", "--sysroot", "machine", *QUICK)
    assert "input 'x'" in sentence
    assert "'height'" in sentence
    assert "export the model with its other sizes fixed" in sentence


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--threads", "4096"], ["4096 threads", "ask for at most"]),
        (["--threads", "0"], ["0", "give at least 1"]),
        (["--threads", "many"], ["--threads", "'many'", "integer"]),
        (["--repeats", "2"], ["2 repeats", "at least 3"]),
        (
            ["--workload", "train", "--processor", "gpu", "--precision", "bf16"],
            ["builtin trains in fp32 alone on a graphics processor", "leave out the precision bf16"],
        ),
        (["--duration=-1"], ["duration", "-1", "above 0 s"]),
        (["--duration", "nan"], ["duration", "above 0 s"]),
        (["--batch", "0"], ["--batch", "at least 1"]),
        (["--modes", "MODE_15W"], ["'MODE_15W'", "choose from: current"]),
        ([*XAVIER, "--modes", "TURBO"], ["'TURBO'", "choose from", "MAXN"]),
        ([*XAVIER, "--modes", "MODE_10W"], ["'MODE_10W'", "reboot", "'current'"]),
        ([*XAVIER, "--modes", "MODE_15W", "--threads", "8"], ["4 cores online", "at most 4 threads"]),
        (["--board", "toaster"], ["'toaster'", "`powerlab boards`"]),
        (["--board", "jetson-nan"], ["'jetson-nan'", "did you mean jetson-nano?", "`powerlab boards`"]),
        (["--board", "generic"], ["generic has no simulator", "`powerlab boards`"]),
        (["--sysroot", "nowhere"], ["nowhere is not a directory", "give the root"]),
        (["--sysroot", "text.txt"], ["text.txt is not a directory", "give the root"]),
        (["--engine", "abacus"], ["'abacus'", "choose one of"]),
        (["--output", "/proc/no/where.json"], ["--output /proc/no/where.json", "choose a file"]),
        (["--database", "/proc/no/where.db"], ["/proc/no/where.db", "give a path"]),
        (["--database", "folder"], ["folder is a folder", "give the path of a file"]),
        (["--database", "text.txt"], ["text.txt is not an SQLite database", "give another path"]),
        (["--database", "postgresql://me@127.0.0.1:1/db"], ["postgresql://me@127.0.0.1:1/db", "PostgreSQL is running"]),
        (["--database", "mysql://me@here/db"], ["'mysql'", "postgresql://"]),
        (["--frobnicate"], ["--frobnicate", "--help"]),
    ],
)
def test_a_sweep_that_cannot_be_carried_out(bench, options, words):
    where = [] if {"--board", "--sysroot"} & set(options) else ["--sysroot", "machine"]
    kept = ["--database", "none"] if "--database" not in options else []
    sentence = refusal(bench, "profile", "mobilenetv2", *where, *kept, *QUICK, *options)
    assert [word for word in words if word not in sentence] == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--input", "name.npz"], ["no input 'z'", "'x' float32 [1, 3, 4, 4]"]),
        (["--input", "shape.npz"], ["[1, 3, 4, 5]", "'x' float32 [1, 3, 4, 4]"]),
        (["--input", "text.txt"], ["text.txt", "numpy.savez"]),
        (["--input", "none.npz"], ["none.npz does not exist", "numpy.savez"]),
        (["--input", "right.npz", "--output", "/proc/no/out.npz"], ["/proc/no/out.npz", "give another path"]),
        (["--input", "right.npz", "--threads", "0"], ["threads", "1 to"]),
        (["--input", "right.npz", "--input-shape", "x:4"], ["'x:4'", "NAME=1x3x224x224"]),
        ([], ["--input", "--help"]),
    ],
)
def test_an_engine_run_that_cannot_be_carried_out(bench, words, says):
    output = [] if "--output" in words else ["--output", "out.npz"]
    sentence = refusal(bench, "engine", "run", "good.onnx", *words, *output)
    assert [word for word in says if word not in sentence] == []
    assert not (bench.home / "out.npz").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["agent", "enrol", "--code", "x"], ["check the address", "server runs"]),
        (["sweep", "list"], ["no powerlab server answers", "`powerlab serve`", "another address"]),
        (["sweep", "create", "alexnet"], ["no powerlab server answers", "`powerlab serve`", "another address"]),
        (["runs", "list"], ["no powerlab server answers", "`powerlab serve`", "another address"]),
        (["export"], ["no powerlab server answers", "`powerlab serve`", "another address"]),
    ],
)
def test_a_server_that_is_not_there(bench, words, says):
    sentence = refusal(bench, *words, "--server", NOWHERE)
    assert [word for word in [NOWHERE, *says] if word not in sentence] == []
    wrong = refusal(bench, *words, "--server", "localhost")
    assert "is not a server address" in wrong or "the http:// address of a server" in wrong


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["serve", "--database", "/proc/no/where.db"], ["/proc/no/where.db", "give a path"]),
        (["serve", "--database", "text.txt"], ["not an SQLite database", "give another path"]),
        (["serve", "--host", "0.0.0.0"], ["POWERLAB_OPERATOR_TOKEN", "127.0.0.1"]),
        (["serve", "--port", "99999"], ["99999", "0 to 65535"]),
        (["runs", "list", "--database", "none.db"], ["no database none.db", "give another one"]),
        (["export", "--database", "none.db", "--output", "none.csv"], ["no database none.db", "give another one"]),
        (["agent", "run", "--state", "folder"], ["folder", "`powerlab agent enrol"]),
        (["agent", "run", "--state", "text.txt"], ["text.txt", "--state"]),
        (["boards", "show", "toaster"], ["'toaster'", "`powerlab boards`"]),
        (["boards", "simulate", "jetson-agx-xavier", "."], ["is not empty", "give a directory"]),
        (["boards", "simulate", "jetson-agx-xavier", "/proc/no"], ["/proc/no", "choose another place"]),
        (["modes", "set", "TURBO", "--sysroot", "machine"], ["'TURBO'", "choose one of"]),
        (["modes", "restore", "--sysroot", "nowhere"], ["nowhere is not a directory", "`powerlab boards simulate`"]),
        (["doctor", "--sysroot", "nowhere"], ["nowhere is not a directory", "give the root"]),
        (["demo", "--state", "/proc/no", "--no-serve"], ["--state /proc/no", "choose another folder"]),
        (["frobnicate"], ["'frobnicate'", "choose from", "--help"]),
        (["--frobnicate"], ["COMMAND", "--help"]),
    ],
)
def test_other_commands(bench, words, says):
    sentence = refusal(bench, *words)
    assert [word for word in says if word not in sentence] == []
    assert not (bench.home / "none.csv").exists()


def test_a_taken_port(bench, taken_port):
    for words in (["serve", "--database", "served.db"], ["demo", "--state", "demo", "--no-serve"]):
        sentence = refusal(bench, *words, "--port", taken_port)
        assert f"port {taken_port} of 127.0.0.1" in sentence
        assert "choose another with --port" in sentence


def test_a_wrong_enrolment_code_and_an_export_to_nowhere(powerlab):
    (powerlab.home / "machine").mkdir()
    with powerlab.started("serve", "--port", "0", "--database", "served.db") as server:
        address = server.stdout.readline().split()[-1]
        sentence = refusal(powerlab, "agent", "enrol", "--server", address, "--code", "wrong", "--state", "agent")
        assert "code" in sentence
        assert "enrolment" in sentence
        assert not (powerlab.home / "agent").exists()
        sentence = refusal(powerlab, "export", "--server", address, "--output", "/proc/no/runs.csv")
        assert "cannot write --output /proc/no/runs.csv" in sentence
        assert "choose a file" in sentence
        assert "`powerlab runs list`" in refusal(powerlab, "runs", "show", "none", "--server", address)


def test_a_reader_that_stops_reading_is_no_traceback(powerlab):
    with powerlab.started("boards", "--json") as program:
        program.stdout.close()
        program.stdout = None
        _, complaint = program.communicate(timeout=60)
    assert (program.returncode, complaint) == (141, "")
