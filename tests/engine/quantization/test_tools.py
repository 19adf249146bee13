"""Models as ONNX Runtime's own tools quantize them: static, dynamic, in both forms, and in float16."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from engine_models import run_ort
from trained import answers_of, pictures

from powerlab.engine import Session

BATCH = 50


def quantized(trained, path, how):
    """Write the model that ONNX Runtime's tool makes of a trained one."""
    from onnxruntime import quantization as tool

    if how == "dynamic":
        tool.quantize_dynamic(trained, path, weight_type=tool.QuantType.QInt8)
        return
    images, _ = pictures(200, 2)

    class Reader(tool.CalibrationDataReader):
        def __init__(self):
            self._parts = iter([{"x": part} for part in np.split(images, 4)])

        def get_next(self):
            return next(self._parts, None)

    form = tool.QuantFormat.QOperator if "operators" in how else tool.QuantFormat.QDQ
    kind = tool.QuantType.QInt8 if "signed activations" in how else tool.QuantType.QUInt8
    tool.quantize_static(
        trained,
        path,
        Reader(),
        quant_format=form,
        per_channel="channel" in how,
        activation_type=kind,
        weight_type=tool.QuantType.QUInt8 if "unsigned weights" in how else tool.QuantType.QInt8,
    )


@pytest.mark.parametrize(
    "how",
    [
        "dynamic",
        "operators",
        "operators, a scale a channel",
        "operators, unsigned weights",
        "QDQ, a scale a channel",
        "QDQ, signed activations",
    ],
)
def test_what_a_tool_quantizes_gives_the_tools_answers(how, trained, tmp_path):
    path = tmp_path / "quantized.onnx"
    quantized(trained, path, how)
    operators = {node.op_type for node in onnx.load(path).graph.node}
    assert operators & {"QLinearConv", "ConvInteger", "DequantizeLinear"}
    images, _ = pictures(500, 4)
    found = answers_of(Session(path, threads=1), images)
    expected = np.concatenate([run_ort(str(path), {"x": part})["y"] for part in np.split(images, 10)])
    assert np.square(found - expected).sum() < 10**-3.5 * np.square(expected).sum()
    assert np.mean(found.argmax(axis=1) == expected.argmax(axis=1)) >= 0.99


@pytest.mark.parametrize("keeps_types", [True, False])
def test_a_model_in_float16_gives_the_answers_of_float32(keeps_types, trained, tmp_path):
    from onnxruntime.transformers.float16 import convert_float_to_float16

    model = convert_float_to_float16(onnx.load(trained), keep_io_types=keeps_types)
    assert {one.data_type for one in model.graph.initializer} == {onnx.TensorProto.FLOAT16}
    path = tmp_path / "half.onnx"
    onnx.save(model, path)
    images, _ = pictures(500, 4)
    found = answers_of(Session(path, threads=1), images if keeps_types else images.astype(np.float16))
    expected = answers_of(Session(trained, threads=1), images)
    assert found.dtype == (np.float32 if keeps_types else np.float16)
    np.testing.assert_allclose(found, expected, atol=0.01)
    assert np.abs(found - expected).max() > 0, "weights were rounded"
