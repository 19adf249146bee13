"""Graphs to ONNX files, without the onnx and protobuf packages.

write_onnx(graph, Path("model.onnx"))

Shapes are static, constants folded where the graph has them so; nodes are ONNX's own in the form of the opset that the
graph states, or of the oldest in which QuantizeLinear takes a scale a channel.
"""

from __future__ import annotations

from pathlib import Path

from powerlab.atomic_file import write_whole
from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.onnx_writer.messages import model_message
from powerlab.engine.frontend.onnx_writer.opsets import in_newer_form
from powerlab.engine.ir.graph import Graph

MAX_FILE_BYTES = 2**31
"""A protobuf message cannot be larger."""


def onnx_bytes(graph: Graph) -> bytes:
    """Return a graph of ONNX's operators as the content of a file.

    Raises:
        PowerlabError: a node cannot be written, or the file would be larger than ONNX allows.
    """
    data = model_message(in_newer_form(graph))
    if len(data) >= MAX_FILE_BYTES:
        raise PowerlabError("the model is larger than an ONNX file can be (2 GiB); write a smaller one.")
    return data


def write_onnx(graph: Graph, path: Path) -> None:
    """Write a graph of ONNX's operators to a file, whole or not at all.

    Raises:
        PowerlabError: a node cannot be written, or the file cannot.
    """
    data = onnx_bytes(graph)
    try:
        write_whole(path, data)
    except OSError as error:
        raise PowerlabError(f"{path} cannot be written: {error.strerror or error}; give another path.") from None
