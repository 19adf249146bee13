"""Finding weights that lie beside a model's file instead of in it.

Every place of the format where a tensor may stand is looked at, subgraphs and functions too, which the reader of graphs
leaves unread. The numbers are those of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from __future__ import annotations

from powerlab.engine.frontend.onnx_reader.wire import fields

_MODEL = {7: "graph", 20: "training", 25: "function"}
_INSIDE = {
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}
_TENSOR_NAME, _EXTERNAL_DATA, _DATA_LOCATION, _EXTERNAL = 8, 13, 14, 1


def external_tensor(data: memoryview) -> str | None:
    """Return the name of a tensor whose data lies in another file; None where the model is whole in its file.

    Args:
        data: the bytes of the file.

    Raises:
        PowerlabError: the bytes are no protobuf message.
    """
    waiting = [(data, _MODEL)]
    while waiting:
        message, inside = waiting.pop()
        for number, _, value in fields(message):
            if number not in inside or isinstance(value, int):
                continue
            kind = inside[number]
            if kind != "tensor":
                waiting.append((value, _INSIDE[kind]))
            elif (name := _external_name(value)) is not None:
                return name
    return None


def _external_name(tensor: memoryview) -> str | None:
    name, external = "", False
    for number, _, value in fields(tensor):
        if number == _TENSOR_NAME and not isinstance(value, int):
            name = bytes(value).decode("utf-8", "replace")
        external |= number == _EXTERNAL_DATA or (number == _DATA_LOCATION and value == _EXTERNAL)
    return name if external else None
