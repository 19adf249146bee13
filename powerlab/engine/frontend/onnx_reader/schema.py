"""The part of the ONNX schema the engine reads, as structs: each lists its protobuf field numbers in ``FIELDS``.

Source: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto. Unknown fields are skipped, as protobuf asks.
"""

from __future__ import annotations

from array import array
from enum import IntEnum
from functools import partial
from typing import Any, ClassVar, TypeAlias, TypeVar

from msgspec import Struct, field

from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.onnx_reader import wire

MAX_INTEGERS = 2**27
"""The longest list of integers: each takes one byte in the file and eight in memory."""

MAX_DEPTH = 64
"""Messages within messages; a body of a node within another is three."""


class Kind(IntEnum):
    """What a member of a message is; native/protobuf/messages.cpp has the same numbers."""

    INTEGER = 0
    INTEGERS = 1
    FLOAT = 2
    FLOATS = 3
    DOUBLES = 4
    STRING = 5
    STRINGS = 6
    BYTES = 7
    MESSAGE = 8
    MESSAGES = 9


Member = tuple[str, Kind, type[Any] | None]
"""Its name and kind, and the type of messages."""

Message = TypeVar("Message")


def decode(message_type: type[Message], data: memoryview) -> Message:
    """Return ``data`` as a message of ``message_type``.

    Args:
        message_type: one of the dataclasses below.
        data: the bytes of the message.

    Raises:
        PowerlabError: the bytes are no such message, or there are too many in it.
    """
    try:
        found: Message = wire.native.decode(
            message_type, data, most_fields=wire.MOST_FIELDS, most_integers=MAX_INTEGERS, most_depth=MAX_DEPTH
        )
    except ValueError as error:
        raise wire.malformed(str(error)) from None
    except RuntimeError as error:
        raise PowerlabError(str(error)) from None
    return found


def _one(kind: Kind, name: str) -> Member:
    return name, kind, None


def _message(name: str, message_type: type[Any]) -> Member:
    return name, Kind.MESSAGE, message_type


def _messages(name: str, message_type: type[Any]) -> Member:
    return name, Kind.MESSAGES, message_type


_integer, _integers, _float, _floats, _doubles, _string, _strings, _bytes = (
    partial(_one, kind)
    for kind in (
        *(Kind.INTEGER, Kind.INTEGERS, Kind.FLOAT, Kind.FLOATS, Kind.DOUBLES),
        *(Kind.STRING, Kind.STRINGS, Kind.BYTES),
    )
)

Integers: TypeAlias = "array[int] | tuple[()]"
Floats: TypeAlias = "array[float] | tuple[()]"
"""Lists of numbers; the empty tuple where a message holds none."""


class Entry(Struct):
    """One key and value of a tensor's external data."""

    FIELDS: ClassVar = {1: _string("key"), 2: _string("value")}
    key: str = ""
    value: str = ""


class Tensor(Struct):
    """TensorProto: a weight, its data in ``raw_data``, in one typed list, or in a file beside the model."""

    FIELDS: ClassVar = {
        1: _integers("dims"),
        2: _integer("data_type"),
        4: _floats("float_data"),
        5: _integers("int32_data"),
        7: _integers("int64_data"),
        8: _string("name"),
        9: _bytes("raw_data"),
        10: _doubles("double_data"),
        13: _messages("external_data", Entry),
        14: _integer("data_location"),
    }
    dims: Integers = ()
    data_type: int = 0
    float_data: Floats = ()
    int32_data: Integers = ()
    int64_data: Integers = ()
    name: str = ""
    raw_data: memoryview | None = None
    double_data: Floats = ()
    external_data: list[Entry] = []
    data_location: int = 0


_NO_BYTES = memoryview(b"")


class Attribute(Struct):
    """AttributeProto: ``type`` says which member holds the value."""

    FIELDS: ClassVar = {
        1: _string("name"),
        2: _float("f"),
        3: _integer("i"),
        4: _bytes("s"),
        5: _message("t", Tensor),
        7: _floats("floats"),
        8: _integers("ints"),
        9: _strings("strings"),
        20: _integer("type"),
        21: _string("ref_attr_name"),
    }
    name: str = ""
    f: float = 0.0
    i: int = 0
    s: memoryview = _NO_BYTES
    t: Tensor | None = None
    g: GraphMessage | None = None
    floats: Floats = ()
    ints: Integers = ()
    strings: list[str] = []
    type: int = 0
    ref_attr_name: str = ""


class NodeMessage(Struct):
    """NodeProto."""

    FIELDS: ClassVar = {
        1: _strings("input"),
        2: _strings("output"),
        3: _string("name"),
        4: _string("op_type"),
        5: _messages("attribute", Attribute),
        7: _string("domain"),
    }
    input: list[str] = []
    output: list[str] = []
    name: str = ""
    op_type: str = ""
    attribute: list[Attribute] = []
    domain: str = ""


class Dimension(Struct):
    """One axis of a shape: a value, a name, or neither."""

    FIELDS: ClassVar = {1: _integer("dim_value"), 2: _string("dim_param")}
    dim_value: int | None = None
    dim_param: str = ""


class Shape(Struct):
    """TensorShapeProto."""

    FIELDS: ClassVar = {1: _messages("dim", Dimension)}
    dim: list[Dimension] = []


class TensorType(Struct):
    """TypeProto.Tensor."""

    FIELDS: ClassVar = {1: _integer("elem_type"), 2: _message("shape", Shape)}
    elem_type: int = 0
    shape: Shape | None = None


class Type(Struct):
    """TypeProto; only tensors are read."""

    FIELDS: ClassVar = {1: _message("tensor_type", TensorType)}
    tensor_type: TensorType | None = None


class ValueInfo(Struct):
    """ValueInfoProto."""

    FIELDS: ClassVar = {1: _string("name"), 2: _message("type", Type)}
    name: str = ""
    type: Type = field(default_factory=Type)


class GraphMessage(Struct):
    """GraphProto."""

    FIELDS: ClassVar = {
        1: _messages("node", NodeMessage),
        2: _string("name"),
        5: _messages("initializer", Tensor),
        11: _messages("input", ValueInfo),
        12: _messages("output", ValueInfo),
    }
    node: list[NodeMessage] = []
    name: str = ""
    initializer: list[Tensor] = []
    input: list[ValueInfo] = []
    output: list[ValueInfo] = []


Attribute.FIELDS[6] = _message("g", GraphMessage)  # here, because graphs hold nodes, and these attributes


class OperatorSet(Struct):
    """OperatorSetIdProto: a version of the operators of one domain (``""``: ONNX's own)."""

    FIELDS: ClassVar = {1: _string("domain"), 2: _integer("version")}
    domain: str = ""
    version: int = 0


class Model(Struct):
    """ModelProto."""

    FIELDS: ClassVar = {
        1: _integer("ir_version"),
        7: _message("graph", GraphMessage),
        8: _messages("opset_import", OperatorSet),
    }
    ir_version: int = 0
    graph: GraphMessage | None = None
    opset_import: list[OperatorSet] = []
