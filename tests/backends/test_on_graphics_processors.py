"""Engines on a graphics processor: the same answers where there is one, one sentence where there is none."""

from __future__ import annotations

from unittest.mock import MagicMock

import numpy as np
import pytest
from backend_answers import PEERS
from engine_models import onnx_bytes
from onnx import helper

from powerlab.backends.base import LoadOptions
from powerlab.backends.packages import required
from powerlab.backends.registry import backend_module, load
from powerlab.backends.torch import card
from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Processor, WorkloadKind
from powerlab.measure.output_check import largest_difference

ON_CARD = sorted({"ncnn", "onnxruntime", "openvino"} & set(PEERS))


@pytest.fixture
def model(tmp_path):
    """A convolution, small because a driver in software takes seconds to compile each kernel."""
    weight = np.random.default_rng(3).normal(size=(8, 4, 3, 3)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], "n", pads=[1, 1, 1, 1])
    path = tmp_path / "conv.onnx"
    path.write_bytes(onnx_bytes([node], {"x": (2, 4, 9, 7)}, constants={"w": weight}))
    return path


def has_card(engine):
    module = required(engine, engine)
    if engine == "ncnn":
        return module.get_gpu_count() > 0
    if engine == "openvino":
        return "GPU" in module.Core().available_devices
    return "CUDAExecutionProvider" in module.get_available_providers()


@pytest.mark.parametrize("engine", ON_CARD)
def test_a_card_gives_the_built_in_engine_s_answers_or_there_is_none_and_that_is_said(engine, model):
    options = LoadOptions(model=str(model), batch_size=2, threads=1, processor=Processor.GPU)
    if not has_card(engine):
        words = {"ncnn": "with a Vulkan driver", "onnxruntime": "no CUDAExecutionProvider", "openvino": "no graphics"}
        with pytest.raises(PowerlabError, match=words[engine]):
            load(backend_module(engine), options)
        return
    backend = load(backend_module(engine), options)
    assert backend.processor_name
    expected = load(backend_module("builtin"), LoadOptions(model=str(model), batch_size=2, threads=1))
    found = backend.run(backend.inputs(7))
    assert largest_difference(found, expected.run(expected.inputs(7))) < 1e-5


def test_ncnn_without_a_vulkan_driver_says_so(model, monkeypatch):
    ncnn = required("ncnn", "ncnn")
    monkeypatch.setattr(ncnn, "get_gpu_count", lambda: 0)
    options = LoadOptions(model=str(model), batch_size=2, threads=1, processor=Processor.GPU)
    with pytest.raises(PowerlabError, match=r"^ncnn finds no graphics processor with a Vulkan driver; install"):
        load(backend_module("ncnn"), options)


class Torch:
    """As much of PyTorch as tells which graphics processors there are."""

    __version__ = "2.13.0"

    class backends:  # noqa: N801 - its name in PyTorch
        class cudnn:  # noqa: N801
            allow_tf32 = True

        class cuda:  # noqa: N801
            class matmul:  # noqa: N801
                allow_tf32 = False

    def __init__(self, *there):
        for name in ("cuda", "xpu"):
            setattr(self, name, type(name, (), {"is_available": staticmethod(lambda name=name: name in there)}))


def test_torch_takes_cuda_or_xpu_and_never_tf32():
    assert (card("torch", Torch("cuda", "xpu")), card("torch", Torch("xpu"))) == ("cuda", "xpu")
    assert Torch.backends.cudnn.allow_tf32 is False
    with pytest.raises(PowerlabError, match=r"^torch finds no graphics processor: PyTorch 2\.13\.0 sees neither CUDA"):
        card("torch", Torch())


@pytest.mark.parametrize("engine", ["torch", "torch-compile"])
def test_torch_without_a_card_does_not_train_on_one(model, monkeypatch, engine):
    monkeypatch.setattr("powerlab.backends.training.torch.required", lambda *_: Torch())
    options = LoadOptions(model=str(model), batch_size=2, threads=1, processor=Processor.GPU, optimizer="sgd")
    with pytest.raises(PowerlabError, match=rf"^{engine} finds no graphics processor: PyTorch 2\.13\.0 sees neither"):
        load(backend_module(engine, WorkloadKind.TRAIN), options)


def test_what_torch_compile_does_not_compile_is_said(model, monkeypatch):
    def compiled(*_):
        raise RuntimeError("InvalidCxxCompiler: No working C++ compiler found.\nSet TORCHDYNAMO_VERBOSE=1")

    torch = MagicMock(**{"get_num_threads.return_value": 1, "compile.return_value": compiled})
    monkeypatch.setattr("powerlab.backends.torch.required", lambda *_: torch)
    with pytest.raises(
        PowerlabError, match=r"^torch.compile cannot run 'test': .* C\+\+ compiler found; use torch, or"
    ):
        load(backend_module("torch-compile"), LoadOptions(model=str(model), batch_size=2, threads=1))


def test_precisions_on_a_card_are_not_those_of_the_cores(model):
    options = LoadOptions(model=str(model), batch_size=2, threads=1, processor=Processor.GPU, precision="bf16")
    with pytest.raises(PowerlabError, match="ncnn computes in fp32 or fp16 here, not in 'bf16'"):
        load(backend_module("ncnn"), options)
