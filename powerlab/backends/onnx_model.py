"""A model as the bytes of an ONNX file in which every shape is static, for the engines that read ONNX.

A file is passed on as its author exported it, opset and all, with only the shapes of its inputs set; a model of the zoo
is exported. Needs the ``onnx`` package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from powerlab.backends.onnx_export import export_onnx
from powerlab.backends.packages import required
from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.load import load_graph, split_size
from powerlab.engine.frontend.onnx_writer import onnx_bytes
from powerlab.engine.frontend.zoo import ZOO
from powerlab.engine.ir.graph import Graph
from powerlab.engine.quantization.precisions import in_precision

QUANTIZED = ("int8", "int8w", "int4w")
"""Precisions that a file says by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxModel:
    """The bytes of an ONNX file, shape and type of each input, and the names of the outputs, in the file's order."""

    content: bytes
    inputs: dict[str, tuple[int, ...]]
    dtypes: dict[str, np.dtype[Any]]
    outputs: tuple[str, ...]


def onnx_model(engine: str, model: str, batch_size: int, precision: str = "fp32") -> OnnxModel:
    """Return a model for an engine, the first dimension of each input being the batch size.

    In a precision of ``QUANTIZED`` it is quantized by powerlab, as the built-in engine's is: the same integers and
    scales, in int8 from the same calibration.

    Raises:
        PowerlabError: the onnx package is missing, the built-in reader refuses the model (its answers are what the
            other engines' are held against), or the model is too large for one ONNX file.
    """
    onnx = required(engine, "onnx")
    graph = load_graph(model, batch_size=batch_size)
    return OnnxModel(
        content=_content(onnx, model, graph, precision),
        inputs={info.name: info.shape for info in graph.inputs},
        dtypes={info.name: info.dtype for info in graph.inputs},
        outputs=tuple(info.name for info in graph.outputs),
    )


def _content(onnx: Any, model: str, graph: Graph, precision: str) -> bytes:
    if precision in QUANTIZED:
        return onnx_bytes(in_precision(graph, model, precision))
    return export_onnx(graph) if split_size(model)[0] in ZOO else _with_shapes(onnx, model, graph)


def _with_shapes(onnx: Any, path: str, graph: Graph) -> bytes:
    """Return a file's model with the input shapes of a loaded graph; the shapes inside it are inferred anew."""
    model = onnx.load(path)
    shapes = {info.name: info.shape for info in graph.inputs}
    for value in model.graph.input:
        if value.name in shapes:
            dimensions = value.type.tensor_type.shape
            del dimensions.dim[:]
            for size in shapes[value.name]:
                dimensions.dim.add().dim_value = size
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    try:
        content: bytes = model.SerializeToString()
    except ValueError as error:
        raise PowerlabError(
            f"{path} is too large for engines that read ONNX from memory (2 GiB with its weights); use another engine."
        ) from error
    return content
