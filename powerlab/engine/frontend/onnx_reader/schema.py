"""The part of the ONNX schema the engine reads, as dataclasses: each lists its protobuf field numbers in ``FIELDS``.

Source: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto. Unknown fields are skipped, as protobuf asks.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.onnx_reader import wire

MAX_INTEGERS = 2**27
"""The longest list of integers: each takes one byte in the file and eight in memory."""


MAX_DEPTH = 64
"""Messages within messages; a body of a node within another is three."""


class Budget:
    """How many fields of a file may still be read, whatever message they are in, and how deep that one lies."""

    __slots__ = ("depth", "fields")

    def __init__(self) -> None:
        self.fields = wire.MOST_FIELDS
        self.depth = 0

    def take(self, count: int) -> None:
        """Count fields.

        Raises:
            PowerlabError: there are too many.
        """
        self.fields -= count
        if self.fields < 0:
            raise PowerlabError(
                f"it has more than {wire.MOST_FIELDS} fields, which no network has; export the model again."
            )


Setter = Callable[[Any, str, int, wire.Value, Budget], None]
Message = TypeVar("Message")


def decode(message_type: type[Message], data: memoryview, budget: Budget | None = None) -> Message:
    """Return ``data`` as a message of ``message_type``.

    Args:
        message_type: one of the dataclasses below.
        data: the bytes of the message.
        budget: of the file the message stands in; None: it stands alone.

    Raises:
        PowerlabError: the bytes are no such message, or there are too many in it.
    """
    message, budget = message_type(), budget or Budget()
    budget.depth += 1
    if budget.depth > MAX_DEPTH:
        raise PowerlabError(f"its messages are nested more than {MAX_DEPTH} deep; export the model again.")
    known: Mapping[int, tuple[str, Setter]] = message_type.FIELDS  # type: ignore[attr-defined]
    found = wire.fields(data, budget.fields + 1)
    budget.take(len(found))
    for number, wire_type, value in found:
        setting = known.get(number)
        if setting is not None:
            setting[1](message, setting[0], wire_type, value, budget)
    budget.depth -= 1
    return message


def _payload(value: wire.Value) -> memoryview:
    if isinstance(value, int):
        raise wire.malformed("a number stands where text or a message belongs")
    return value


def _text(value: wire.Value) -> str:
    try:
        return str(_payload(value), "utf-8")
    except UnicodeDecodeError:
        raise wire.malformed("a name is not UTF-8") from None


def _integer(message: Any, name: str, _wire_type: int, value: wire.Value, _budget: Budget) -> None:
    if not isinstance(value, int):
        raise wire.malformed("something else stands where an integer belongs")
    setattr(message, name, wire.signed(value))


def _float(message: Any, name: str, wire_type: int, value: wire.Value, _budget: Budget) -> None:
    if wire_type != wire.FIXED32:
        raise wire.malformed("something else stands where a float belongs")
    setattr(message, name, wire.float32(_payload(value)))


def _string(message: Any, name: str, _wire_type: int, value: wire.Value, _budget: Budget) -> None:
    setattr(message, name, _text(value))


def _bytes(message: Any, name: str, _wire_type: int, value: wire.Value, _budget: Budget) -> None:
    setattr(message, name, _payload(value))


def _strings(message: Any, name: str, _wire_type: int, value: wire.Value, _budget: Budget) -> None:
    getattr(message, name).append(_text(value))


def _integers(message: Any, name: str, _wire_type: int, value: wire.Value, _budget: Budget) -> None:
    numbers: array[int] = getattr(message, name)
    if isinstance(value, int):
        numbers.append(wire.signed(value))
    else:
        for block in wire.packed_varints(value):
            numbers.frombytes(block.tobytes())
            if len(numbers) > MAX_INTEGERS:
                raise PowerlabError(f"it has a list of more than {MAX_INTEGERS} integers; export the model again.")


def _reals(message: Any, name: str, wire_type: int, value: wire.Value, _budget: Budget) -> None:
    numbers: array[float] = getattr(message, name)
    data = _payload(value)
    expected = wire.FIXED32 if numbers.itemsize == 4 else wire.FIXED64
    if wire_type not in (wire.BYTES, expected) or len(data) % numbers.itemsize:
        raise wire.malformed("a list of floats has a wrong size")
    numbers.frombytes(data)


def _one(message_type: type[Any]) -> Setter:
    def set_message(message: Any, name: str, _wire_type: int, value: wire.Value, budget: Budget) -> None:
        setattr(message, name, decode(message_type, _payload(value), budget))

    return set_message


def _many(message_type: type[Any]) -> Setter:
    def add_message(message: Any, name: str, _wire_type: int, value: wire.Value, budget: Budget) -> None:
        getattr(message, name).append(decode(message_type, _payload(value), budget))

    return add_message


def _int64s() -> array[int]:
    return array("q")


@dataclass(slots=True)
class Entry:
    """One key and value of a tensor's external data."""

    FIELDS: ClassVar = {1: ("key", _string), 2: ("value", _string)}
    key: str = ""
    value: str = ""


@dataclass(slots=True)
class Tensor:
    """TensorProto: a weight, its data in ``raw_data``, in one typed list, or in a file beside the model."""

    FIELDS: ClassVar = {
        1: ("dims", _integers),
        2: ("data_type", _integer),
        4: ("float_data", _reals),
        5: ("int32_data", _integers),
        7: ("int64_data", _integers),
        8: ("name", _string),
        9: ("raw_data", _bytes),
        10: ("double_data", _reals),
        13: ("external_data", _many(Entry)),
        14: ("data_location", _integer),
    }
    dims: array[int] = field(default_factory=_int64s)
    data_type: int = 0
    float_data: array[float] = field(default_factory=lambda: array("f"))
    int32_data: array[int] = field(default_factory=_int64s)
    int64_data: array[int] = field(default_factory=_int64s)
    name: str = ""
    raw_data: memoryview | None = None
    double_data: array[float] = field(default_factory=lambda: array("d"))
    external_data: list[Entry] = field(default_factory=list)
    data_location: int = 0


@dataclass(slots=True)
class Attribute:
    """AttributeProto: ``type`` says which member holds the value."""

    FIELDS: ClassVar = {
        1: ("name", _string),
        2: ("f", _float),
        3: ("i", _integer),
        4: ("s", _bytes),
        5: ("t", _one(Tensor)),
        7: ("floats", _reals),
        8: ("ints", _integers),
        9: ("strings", _strings),
        20: ("type", _integer),
        21: ("ref_attr_name", _string),
    }
    name: str = ""
    f: float = 0.0
    i: int = 0
    s: memoryview = field(default_factory=lambda: memoryview(b""))
    t: Tensor | None = None
    g: GraphMessage | None = None
    floats: array[float] = field(default_factory=lambda: array("f"))
    ints: array[int] = field(default_factory=_int64s)
    strings: list[str] = field(default_factory=list)
    type: int = 0
    ref_attr_name: str = ""


@dataclass(slots=True)
class NodeMessage:
    """NodeProto."""

    FIELDS: ClassVar = {
        1: ("input", _strings),
        2: ("output", _strings),
        3: ("name", _string),
        4: ("op_type", _string),
        5: ("attribute", _many(Attribute)),
        7: ("domain", _string),
    }
    input: list[str] = field(default_factory=list)
    output: list[str] = field(default_factory=list)
    name: str = ""
    op_type: str = ""
    attribute: list[Attribute] = field(default_factory=list)
    domain: str = ""


@dataclass(slots=True)
class Dimension:
    """One axis of a shape: a value, a name, or neither."""

    FIELDS: ClassVar = {1: ("dim_value", _integer), 2: ("dim_param", _string)}
    dim_value: int | None = None
    dim_param: str = ""


@dataclass(slots=True)
class Shape:
    """TensorShapeProto."""

    FIELDS: ClassVar = {1: ("dim", _many(Dimension))}
    dim: list[Dimension] = field(default_factory=list)


@dataclass(slots=True)
class TensorType:
    """TypeProto.Tensor."""

    FIELDS: ClassVar = {1: ("elem_type", _integer), 2: ("shape", _one(Shape))}
    elem_type: int = 0
    shape: Shape | None = None


@dataclass(slots=True)
class Type:
    """TypeProto; only tensors are read."""

    FIELDS: ClassVar = {1: ("tensor_type", _one(TensorType))}
    tensor_type: TensorType | None = None


@dataclass(slots=True)
class ValueInfo:
    """ValueInfoProto."""

    FIELDS: ClassVar = {1: ("name", _string), 2: ("type", _one(Type))}
    name: str = ""
    type: Type = field(default_factory=Type)


@dataclass(slots=True)
class GraphMessage:
    """GraphProto."""

    FIELDS: ClassVar = {
        1: ("node", _many(NodeMessage)),
        2: ("name", _string),
        5: ("initializer", _many(Tensor)),
        11: ("input", _many(ValueInfo)),
        12: ("output", _many(ValueInfo)),
    }
    node: list[NodeMessage] = field(default_factory=list)
    name: str = ""
    initializer: list[Tensor] = field(default_factory=list)
    input: list[ValueInfo] = field(default_factory=list)
    output: list[ValueInfo] = field(default_factory=list)


Attribute.FIELDS[6] = ("g", _one(GraphMessage))  # here, because graphs hold nodes, and these attributes


@dataclass(slots=True)
class OperatorSet:
    """OperatorSetIdProto: a version of the operators of one domain (``""``: ONNX's own)."""

    FIELDS: ClassVar = {1: ("domain", _string), 2: ("version", _integer)}
    domain: str = ""
    version: int = 0


@dataclass(slots=True)
class Model:
    """ModelProto."""

    FIELDS: ClassVar = {
        1: ("ir_version", _integer),
        7: ("graph", _one(GraphMessage)),
        8: ("opset_import", _many(OperatorSet)),
    }
    ir_version: int = 0
    graph: GraphMessage | None = None
    opset_import: list[OperatorSet] = field(default_factory=list)
