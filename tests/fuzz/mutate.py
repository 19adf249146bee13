"""Changes to ONNX files: to the fields of their messages, to what nodes read and make, and to the bytes themselves.

Most inputs of a fuzzer that knows bytes alone die in the first check of the reader; a file whose messages are changed
one at a time is still a model, or nearly, and comes as far as lowering and kernels.
"""

from __future__ import annotations

import math

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from powerlab.engine.ops import SUPPORTED

MAX_BYTES = 16 * 1024

_WHOLE = (0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 33, 64, -1, -2, -3, 255, 65535, 65536, 65537, 2**31 - 1, 2**31)
_WHOLE += (2**32, 2**32 + 1, 2**40, 2**62, 2**63 - 1, -(2**31), -(2**63), -(2**63) + 1)
_REAL = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-45, 1e-6, 1e6, 3.4e38, -3.4e38, math.inf, -math.inf, math.nan)
_TEXTS = (
    "",
    "SAME_UPPER",
    "SAME_LOWER",
    "VALID",
    "NOTSET",
    "constant",
    "reflect",
    "edge",
    "nearest",
    "linear",
    "floor",
)
_TEXTS += (
    "bidirectional",
    "reverse",
    "forward",
    "tanh",
    "none",
    "asymmetric",
    "half_pixel",
    "align_corners",
    "\0",
    "\n",
)
_TEXTS += ("ai.onnx", "é", "x" * 300)
_OPERATORS = tuple(sorted(SUPPORTED))
_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32,
    FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
    FieldDescriptor.CPPTYPE_ENUM,
}
_REALS = {FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE}


def mutated(data, others, random):
    """Return ``data`` changed once to four times, with pieces of ``others``; at most MAX_BYTES."""
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
        changed = _bytes(data, others, random) if random.random() < 0.1 else _model(data, others, random)
        if len(changed) <= MAX_BYTES:
            data = changed
    return data


def _bytes(data, others, random):
    data = bytearray(data)
    start, end = sorted(random.randrange(len(data) + 1) for _ in range(2))
    match random.randrange(5):
        case 0:
            return bytes(data[:start])
        case 1:
            return bytes(data[:start] + data[end:])
        case 2:
            return bytes(data[:end] + data[start:end] + data[end:])
        case 3:
            other = random.choice(others)
            at = random.randrange(len(other) + 1)
            return bytes(data[:start] + other[at : at + end - start] + data[end:])
        case _:
            for _ in range(random.choice((1, 1, 2, 4))):
                if data:
                    data[random.randrange(len(data))] = random.choice(
                        (0, 1, 2, 0x7F, 0x80, 0xFF, random.randrange(256))
                    )
            return bytes(data)


def _model(data, others, random):
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        return _bytes(data, others, random)
    change = random.choices(*_CHANGES)[0]
    try:
        change(model, others, random)
    except (IndexError, ValueError, TypeError, DecodeError, OverflowError):
        return _bytes(data, others, random)
    return model.SerializeToString()


def _messages(message):
    """Yield a message and all messages in it."""
    yield message
    for field, value in message.ListFields():
        if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            for one in value if field.is_repeated else (value,):
                yield from _messages(one)


def _field(model, others, random):
    """Change any field of any message."""
    message = random.choice(list(_messages(model)))
    known = message.DESCRIPTOR.fields
    given = [field for field, _ in message.ListFields()]
    field = random.choice(given if given and random.random() < 0.8 else known)
    if field.is_repeated:
        _repeated(message, field, random)
    elif random.random() < 0.1:
        message.ClearField(field.name)
    elif field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        getattr(message, field.name).SetInParent()
    else:
        setattr(message, field.name, _scalar(field, getattr(message, field.name), model, random))


def _repeated(message, field, random):
    values = getattr(message, field.name)
    kind = random.randrange(4)
    if kind == 0 or not values:
        if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            added = values.add()
            if len(values) > 1:
                added.CopyFrom(values[random.randrange(len(values) - 1)])
        else:
            values.append(_scalar(field, values[-1] if values else None, message, random))
    elif kind == 1:
        del values[random.randrange(len(values))]
    elif field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        one, other = (random.randrange(len(values)) for _ in range(2))
        values[one].CopyFrom(type(values[one]).FromString(values[other].SerializeToString()))
    else:
        at = random.randrange(len(values))
        values[at] = _scalar(field, values[at], message, random)


def _scalar(field, value, message, random):
    if field.cpp_type in _INTEGERS:
        low = field.cpp_type in (FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_ENUM)
        chosen = (
            value + random.choice((-1, 1)) if value is not None and random.random() < 0.3 else random.choice(_WHOLE)
        )
        return (chosen + 2**31) % 2**32 - 2**31 if low else (chosen + 2**63) % 2**64 - 2**63
    if field.cpp_type in _REALS:
        return random.choice(_REAL)
    if field.type == FieldDescriptor.TYPE_BYTES:
        value = value or b""
        return random.choice((value[:-1], value + b"\0", b"", b"\xff\xfe", value * 2, random.choice(_TEXTS).encode()))
    names = [node.op_type for node in message.graph.node] + _names(message.graph) if hasattr(message, "graph") else []
    return random.choice((random.choice(_TEXTS), random.choice(names or [""]), random.choice(_OPERATORS)))


def _names(graph):
    names = [name for node in graph.node for name in node.output]
    return names + [info.name for info in graph.input] + [tensor.name for tensor in graph.initializer]


def _rewire(model, others, random):
    """Let a node read another tensor."""
    node = random.choice(model.graph.node)
    name = random.choice([*_names(model.graph), ""])
    if node.input and random.random() < 0.8:
        node.input[random.randrange(len(node.input))] = name
    else:
        node.input.append(name)


def _operator(model, others, random):
    random.choice(model.graph.node).op_type = random.choice(_OPERATORS)


def _insert(model, others, random):
    """Put a node, new or like one there is, between a tensor and one that reads it."""
    graph = model.graph
    at = random.randrange(len(graph.node))
    node = graph.node[at]
    reads = random.randrange(len(node.input))
    added = onnx.NodeProto()
    if random.random() < 0.5:
        added.CopyFrom(random.choice(graph.node))
        del added.output[:]
    else:
        added.op_type = random.choice(_OPERATORS)
        added.input.append("")
        for _ in range(random.choice((0, 0, 0, 1, 1, 2, 3))):
            added.input.append(random.choice(_names(graph)))
    added.input[0] = node.input[reads]
    added.name = f"added{random.randrange(10**6)}"
    added.output.append(f"{added.name}_out")
    node.input[reads] = added.output[0]
    kept = [onnx.NodeProto.FromString(one.SerializeToString()) for one in graph.node]
    kept.insert(at, added)
    del graph.node[:]
    graph.node.extend(kept)


def _array(shape, dtype, random):
    generator = np.random.default_rng(random.randrange(2**32))
    if np.dtype(dtype).kind == "f":
        values = generator.standard_normal(shape).astype(dtype)
    else:
        values = generator.integers(-2, 5, shape).astype(dtype)
    return values


def _sizes(random, rank):
    return [random.choice((1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33)) for _ in range(rank)]


def _tensor(model, others, random):
    """Give a constant another shape or type, with data that fits."""
    graph = model.graph
    choices = list(graph.initializer) + [a.t for node in graph.node for a in node.attribute if a.HasField("t")]
    tensor = random.choice(choices)
    dims = list(tensor.dims)
    match random.randrange(4):
        case 0:
            dims = _sizes(random, len(dims))
        case 1 if dims:
            dims[random.randrange(len(dims))] = random.choice((1, 2, 3, 4, 8, 16, 17))
        case 2:
            dims = _sizes(random, random.randrange(6))
        case _:
            random.shuffle(dims)
    if math.prod(dims) > 4000:
        return
    types = {1: np.float32, 7: np.int64, 6: np.int32, 11: np.float64, 10: np.float16}
    dtype = types.get(tensor.data_type, np.float32)
    if random.random() < 0.1:
        dtype = random.choice(list(types.values()))
    tensor.CopyFrom(numpy_helper.from_array(_array(tuple(dims), dtype, random), tensor.name))


def _shape(model, others, random):
    """Give an input another shape."""
    dims = random.choice(model.graph.input).type.tensor_type.shape.dim
    match random.randrange(4):
        case 0 | 1:
            random.choice(dims).dim_value = _sizes(random, 1)[0]
        case 2:
            dims.add().dim_value = _sizes(random, 1)[0]
        case _:
            del dims[random.randrange(len(dims))]


def _freeze(model, others, random):
    """Make a constant of an input, or an input of a constant."""
    graph = model.graph
    if random.random() < 0.7 and graph.input:
        at = random.randrange(len(graph.input))
        kind = graph.input[at].type.tensor_type
        dims = tuple(dim.dim_value for dim in kind.shape.dim)
        if 0 <= math.prod(dims) <= 4000:
            dtype = np.int64 if kind.elem_type == 7 else np.float32
            graph.initializer.append(numpy_helper.from_array(_array(dims, dtype, random), graph.input[at].name))
            del graph.input[at]
    else:
        at = random.randrange(len(graph.initializer))
        tensor = graph.initializer[at]
        graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
        del graph.initializer[at]


def _output(model, others, random):
    """Ask for another tensor as well, or no longer for one."""
    graph = model.graph
    if len(graph.output) > 1 and random.random() < 0.4:
        del graph.output[random.randrange(len(graph.output))]
    else:
        graph.output.add().name = random.choice(_names(graph))


def _opset(model, others, random):
    model.opset_import[0].version = random.choice((7, 8, 9, 10, 11, 12, 13, 14, 17, 18, 19, 20, 21, 22))


def _splice(model, others, random):
    """Add all of another model, its first input being a tensor of this one."""
    other = onnx.ModelProto.FromString(random.choice(others))
    names = _names(model.graph)
    known = set(names)
    rename = {name: f"{name}_{random.randrange(1000)}" for name in _names(other.graph) if name}
    first = random.choice(other.graph.input).name
    rename[first] = random.choice([*[info.name for info in model.graph.output], *names])
    for node in other.graph.node:
        node.input[:] = [rename.get(name, name) for name in node.input]
        node.output[:] = [rename.get(name, name) for name in node.output]
    for part in (other.graph.input, other.graph.output, other.graph.initializer):
        for value in part:
            value.name = rename.get(value.name, value.name)
    model.graph.node.extend(other.graph.node)
    model.graph.initializer.extend(other.graph.initializer)
    model.graph.input.extend(info for info in other.graph.input if info.name not in known)
    if random.random() < 0.7:
        del model.graph.output[:]
    model.graph.output.extend(other.graph.output)


def _attribute(model, others, random):
    """Give a node an attribute of a node of another model, or change one of its own."""
    node = random.choice(model.graph.node)
    if node.attribute and random.random() < 0.6:
        attribute = random.choice(node.attribute)
        field = {1: "f", 2: "i", 3: "s", 6: "floats", 7: "ints", 8: "strings"}.get(attribute.type, "type")
        descriptor = attribute.DESCRIPTOR.fields_by_name[field]
        if descriptor.is_repeated:
            _repeated(attribute, descriptor, random)
        else:
            setattr(attribute, field, _scalar(descriptor, getattr(attribute, field), model, random))
        return
    other = onnx.ModelProto.FromString(random.choice(others))
    node.attribute.append(random.choice(random.choice(other.graph.node).attribute))


_CHANGES = (
    (_field, _rewire, _operator, _insert, _tensor, _shape, _freeze, _output, _opset, _splice, _attribute),
    (3, 2, 1, 1, 2, 1, 1, 1, 1, 1, 2),
)
"""What may be done to a model, and how often."""
