"""``powerlab engine run`` computes what ONNX Runtime computes, from the zoo and from the same model's ONNX file."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from powerlab.backends.onnx_export import export_onnx
from powerlab.engine.frontend.load import load_graph

SHAPE = (1, 3, 64, 64)


@pytest.mark.campaign
@pytest.mark.parametrize("model", ["mobilenetv2", "resnet50"])
def test_engine_run_agrees_with_onnx_runtime(powerlab, model):
    file = powerlab.home / f"{model}.onnx"
    file.write_bytes(export_onnx(load_graph(model, {"x": SHAPE})))
    images = np.random.default_rng(7).standard_normal(SHAPE, dtype=np.float32)
    np.savez(powerlab.home / "in.npz", x=images)
    (expected,) = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"]).run(None, {"x": images})
    assert np.ptp(expected) > 0
    for name, options in ((model, ["--input-shape", "x=1x3x64x64"]), (file, ["--threads", "2"])):
        done = powerlab("engine", "run", name, "--input", "in.npz", "--output", "out.npz", *options)
        assert done.returncode == 0, done.stderr
        with np.load(powerlab.home / "out.npz") as outputs:
            (found,) = outputs.values()
        assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()
