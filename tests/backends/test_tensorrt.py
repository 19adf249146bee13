"""TensorRT by itself, as far as a stand-in for its package and a CUDA driver in the host's memory can show."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import fake_tensorrt
import numpy as np
import onnx
import pytest
from engine_models import onnx_bytes
from onnx import helper

from powerlab.backends import cuda_driver, packages
from powerlab.backends import tensorrt as backend
from powerlab.backends.base import LoadOptions
from powerlab.backends.onnxruntime import half_content
from powerlab.backends.registry import backend_module, load
from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Processor
from powerlab.measure.output_check import largest_difference


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler is installed")
    library = tmp_path_factory.mktemp("cuda") / "libcuda.so.1"
    source = Path(__file__).with_name("fake_cuda.cpp")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library


@pytest.fixture
def tensorrt(monkeypatch, tmp_path):
    """Let the stand-in be the package that is installed."""
    monkeypatch.setitem(sys.modules, "tensorrt", fake_tensorrt)
    monkeypatch.setattr(packages, "installed_version", lambda _: fake_tensorrt.__version__)
    monkeypatch.setattr(fake_tensorrt.Runtime, "folder", tmp_path)
    return fake_tensorrt


@pytest.fixture
def model(tmp_path):
    weight = np.random.default_rng(3).normal(size=(8, 4, 3, 3)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["y"])]
    path = tmp_path / "conv.onnx"
    path.write_bytes(onnx_bytes(nodes, {"x": (2, 4, 9, 7)}, constants={"w": weight}))
    return path


def options(model, precision="fp32"):
    return LoadOptions(model=str(model), batch_size=2, threads=1, processor=Processor.GPU, precision=precision)


def test_numbers_go_to_the_card_and_back_from_any_thread(driver, tensorrt, model, monkeypatch):
    monkeypatch.setattr(cuda_driver, "LIBRARY", str(driver))
    loaded = load(backend_module("tensorrt"), options(model))
    assert loaded.processor_name == "Fake RTX"
    assert tensorrt.Builder.flags == set(), "no TF32 in fp32"
    expected = load(backend_module("builtin"), LoadOptions(model=str(model), batch_size=2, threads=1))
    found = []
    for seed in (7, 8):
        thread = threading.Thread(target=lambda seed=seed: found.append(loaded.run(loaded.inputs(seed))))
        thread.start()
        thread.join()
        assert largest_difference(found[-1], expected.run(expected.inputs(seed))) < 1e-5
    load(backend_module("tensorrt"), options(model, "fp16"))
    assert tensorrt.Builder.flags == {tensorrt.BuilderFlag.FP16}
    monkeypatch.setattr(tensorrt, "BuilderFlag", SimpleNamespace(TF32=tensorrt.BuilderFlag.TF32))  # from TensorRT 11 on
    monkeypatch.setattr(tensorrt.Runtime, "deserialize_cuda_engine", lambda _, plan: plans.append(bytes(plan)))
    plans = []
    with pytest.raises(PowerlabError, match=r"TensorRT has not enough memory on Fake RTX for .*; use a smaller batch"):
        load(backend_module("tensorrt"), options(model, "fp16"))
    assert plans == [half_content(model.read_bytes())]


def test_what_it_refuses_is_a_sentence(driver, tensorrt, model, monkeypatch):
    with pytest.raises(PowerlabError, match="tensorrt computes in fp32 or fp16 here, not in 'int8'"):
        backend.load(options(model, "int8"))
    monkeypatch.setattr(cuda_driver, "LIBRARY", str(driver))
    monkeypatch.setattr(tensorrt.OnnxParser, "refuses", True)
    with pytest.raises(PowerlabError, match=r"TensorRT refuses .*conv\.onnx: In node 0: UNSUPPORTED_NODE$"):
        backend.load(options(model))
    monkeypatch.setenv("FAKE_CARDS", "0")
    with pytest.raises(PowerlabError, match="NVIDIA's driver finds no card here"):
        backend.load(options(model))
    monkeypatch.setattr(cuda_driver, "LIBRARY", "libno-such-cuda.so.1")
    with pytest.raises(PowerlabError, match=r"no driver of NVIDIA's is here \(libno-such-cuda.so.1 cannot be opened\)"):
        backend.load(options(model))
    assert cuda_driver.card_name() == ""
    monkeypatch.delattr(tensorrt.IExecutionContext, "execute_async_v3")
    with pytest.raises(PowerlabError, match=r"TensorRT 10\.13\.0 is older than 8\.5"):
        backend.load(options(model))


def test_the_model_of_onnx_runtime_in_16_bits_takes_and_gives_32(model):
    onnxruntime = pytest.importorskip("onnxruntime")
    half = half_content(model.read_bytes())
    kinds = {one.data_type for one in onnx.load_from_string(half).graph.initializer}
    assert kinds == {onnx.TensorProto.FLOAT16}
    session = onnxruntime.InferenceSession(half, providers=["CPUExecutionProvider"])
    expected = load(backend_module("builtin"), LoadOptions(model=str(model), batch_size=2, threads=1))
    inputs = expected.inputs(7)
    (found,) = session.run(None, inputs)
    assert found.dtype == np.float32
    assert 0 < largest_difference({"y": found}, expected.run(inputs)) < 5e-3
