"""A loaded graph as an ONNX file, so that peers run the same model and weights. Needs the ``onnx`` package."""

from __future__ import annotations

from typing import Any

import numpy as np

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph, Node, TensorInfo

OPSET = 17
IR_VERSION = 8
_ENGINE_ONLY = frozenset({"FusedConv", "FusedGemm", "Clamp", "ScaleShift"})


def export_onnx(graph: Graph) -> bytes:
    """Return ``graph`` as the bytes of an ONNX file of opset 17.

    The graph must be as loaded, for the engine's own fused operators are not ONNX's. Floats are float32, shapes static.

    Raises:
        PowerlabError: the onnx package is missing, or the graph is optimised or of a form older than opset 17.
    """
    try:
        import onnx
        from onnx import helper, numpy_helper
    except ImportError:
        raise PowerlabError("Exporting to ONNX needs the onnx package: pip install 'powerlab[peers]'.") from None

    def value_info(info: TensorInfo) -> Any:
        return helper.make_tensor_value_info(info.name, helper.np_dtype_to_tensor_dtype(info.dtype), info.shape)

    def node(source: Node) -> Any:
        if source.op_type in _ENGINE_ONLY or "flattens" in source.attributes:
            raise PowerlabError(
                f"{source} is not an operator of ONNX opset {OPSET}; export the graph before optimising it."
            )
        attributes: dict[str, Any] = {
            key: numpy_helper.from_array(value, key) if isinstance(value, np.ndarray) else value
            for key, value in source.attributes.items()
        }
        return helper.make_node(source.op_type, source.inputs, source.outputs, source.name, **attributes)

    message = helper.make_graph(
        [node(source) for source in graph.nodes],
        graph.name,
        [value_info(info) for info in graph.inputs],
        [value_info(info) for info in graph.outputs],
        [numpy_helper.from_array(value, name) for name, value in graph.constants.items()],
    )
    model = helper.make_model(
        message, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="powerlab"
    )
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content
