"""Models that mean harm, or come from a broken exporter: what each is, and what the sentence about it must say.

Run as a program it loads each of them in a folder, with little memory and time, and prints what came of it as JSON:

    python hostile_models.py FOLDER
"""

from __future__ import annotations

import json
import resource
import sys
import traceback
from pathlib import Path

import numpy as np
from engine_models import onnx_bytes
from onnx import AttributeProto, TensorProto, helper

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session

ROOM_BYTES = 2**30
CPU_SECONDS = 120

IMAGE = (1, 4, 9, 9)
BIG = 2**31 - 1
NAN, INF = float("nan"), float("inf")


def whole(*numbers):
    return np.array(numbers, np.int64)


def ones(*shape):
    return np.ones(shape, np.float32)


def one_node(operator, inputs=("x",), *, x=IMAGE, constants=None, opset=17, name="n", **attributes):
    """Return the bytes of a model of one node."""
    node = helper.make_node(operator, list(inputs), ["y"], name, **attributes)
    return onnx_bytes([node], {"x": x}, constants=constants, opset=opset)


def made_then(operator, attributes, shape, **more):
    """Return a model whose constant is made by a node, from a shape, and then added to the input."""
    nodes = [
        helper.make_node(operator, ["shape", *more.get("inputs", ())], ["big"], "maker", **attributes),
        helper.make_node("Add", ["x", "big"], ["y"], "n"),
    ]
    return onnx_bytes(nodes, {"x": (1,)}, constants={"shape": whole(*shape), **more.get("constants", {})})


def doubled(times):
    nodes = [helper.make_node("Concat", [f"c{i}", f"c{i}"], [f"c{i + 1}"], f"double{i}", axis=0) for i in range(times)]
    nodes.append(helper.make_node("Add", ["x", f"c{times}"], ["y"], "n"))
    return onnx_bytes(nodes, {"x": (1,)}, constants={"c0": ones(1024)})


def filled(value, dtype):
    return {"value": helper.make_tensor("v", dtype, [1], [value])}


def cycle():
    nodes = [helper.make_node("Add", ["x", "b"], ["a"], "first"), helper.make_node("Relu", ["a"], ["b"], "second")]
    nodes.append(helper.make_node("Relu", ["b"], ["y"], "third"))
    return onnx_bytes(nodes, {"x": (1, 2)})


def lstm(x=(3, 1, 4), hidden=5, directions=1, **attributes):
    constants = {"w": ones(directions, 4 * hidden, x[2]), "r": ones(directions, 4 * hidden, hidden)}
    return one_node("LSTM", ("x", "w", "r"), x=x, constants=constants, **attributes)


def conv(weight=(4, 4, 3, 3), x=IMAGE, **attributes):
    return one_node("Conv", ("x", "w"), x=x, constants={"w": ones(*weight)}, **attributes)


def pads(*sizes):
    return one_node("Pad", ("x", "p"), constants={"p": whole(*sizes)})


def invalid_utf8(field):
    """Return a model with a byte that is no UTF-8 in a name; protobuf's own writers refuse to make one."""
    return one_node("Relu", name="NAME").replace({"name": b"NAME", "operator": b"Relu"}[field], b"\xff\xfe\xfd\xfc")


def attribute_twice():
    node = helper.make_node("LeakyRelu", ["x"], ["y"], "n", alpha=0.5)
    node.attribute.append(helper.make_attribute("alpha", 0.25))
    return onnx_bytes([node], {"x": IMAGE})


def constant_twice():
    node = helper.make_node("Add", ["x", "c"], ["y"], "n")
    graph = helper.make_graph(
        [node],
        "test",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [helper.make_tensor("c", TensorProto.FLOAT, [1], [value]) for value in (1.0, 2.0)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


def subgraph(kind):
    branch = helper.make_graph([helper.make_node("Relu", ["x"], ["z"])], "branch", [], [])
    node = helper.make_node("Relu", ["x"], ["y"], "n")
    attribute = AttributeProto(name="body", type=kind)
    if kind == AttributeProto.GRAPHS:
        attribute.graphs.append(branch)
    else:
        attribute.g.CopyFrom(branch)
    node.attribute.append(attribute)
    return onnx_bytes([node], {"x": IMAGE})


def empty_fields(count):
    """Return a graph of empty nodes: two bytes each in the file, hundreds in memory."""
    graph = b"\x0a\x00" * count
    size, length = b"", len(graph)
    while length >= 0x80:
        size, length = size + bytes([length & 0x7F | 0x80]), length >> 7
    return b"\x3a" + size + bytes([length]) + graph


def renamed_tensor(dims, dtype=TensorProto.FLOAT, raw=b""):
    tensor = TensorProto(name="c", data_type=dtype, dims=dims, raw_data=raw)
    node = helper.make_node("Add", ["x", "c"], ["y"], "n")
    graph = helper.make_graph(
        [node],
        "test",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [tensor],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


def many_nodes(count, name):
    nodes = [helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"], name) for i in range(count)]
    return onnx_bytes(nodes, {"t0": (1, 2)}, [f"t{count}"])


NORM = dict.fromkeys("sbmv", ones(4))

HOSTILE = {
    # Constants as large as a file of some bytes may ask for.
    "constant of shape": (made_then("ConstantOfShape", {}, [BIG]), "ConstantOfShape node 'maker' makes the constants"),
    "wide constant of shape": (
        made_then("ConstantOfShape", filled(1, TensorProto.INT64), [2**28]),
        "Add node 'n' combines the types",
    ),
    "product over 64 bits": (
        made_then("ConstantOfShape", {}, [2**32, 2**32]),
        "ConstantOfShape node 'maker' has the impossible shape",
    ),
    "product beyond all": (made_then("ConstantOfShape", {}, [2**62] * 60), "'maker' has the impossible shape"),
    "negative size": (made_then("ConstantOfShape", {}, [-1]), "'maker' has the impossible shape"),
    "too many axes": (made_then("ConstantOfShape", {}, [1] * 65), "'maker' has the impossible shape"),
    # Which of the two it is depends on how much of the process's memory is taken before.
    "doubled": (
        doubled(20),
        "Concat node 'double.*' makes the constants of this model larger|the model 'test' does not fit into memory",
    ),
    "doubled beyond all": (doubled(40), "Concat node 'double.*' has the impossible shape"),
    "expand": (one_node("Expand", ("c", "s"), constants={"c": ones(1), "s": whole(BIG)}), "Expand node 'n'"),
    "tile": (made_then("Tile", {}, [2**40], inputs=["shape"]), "Tile node 'maker'"),
    "range": (
        made_then("Range", {}, [], inputs=["last", "one"], constants={"last": whole(2**62)[0], "one": whole(1)[0]}),
        "Range node 'maker'",
    ),
    "pads": (pads(0, 0, 65536, 65536, 0, 0, 65536, 65536), "Pad node 'n' has the impossible shape"),
    "pads beyond all": (pads(0, 0, 2**62, 0, 0, 0, 0, 0), "Pad node 'n'"),
    "negative pads": (pads(0, 0, -5, 0, 0, 0, -5, 0), "Pad node 'n'"),
    "gathered": (
        one_node("Gather", ("c", "i"), constants={"c": ones(1), "i": whole(2**62)}),
        "Gather node 'n' cannot be computed",
    ),
    # Windows that are larger than anything, or nothing.
    "halo": (
        conv((4, 4, 1, 1), pads=[65536] * 4, strides=[65536] * 2),
        "the model needs .* GiB for its activations",
    ),
    "halo beyond 64 bits": (
        conv((1, 2**22, 1, 1), (1, 2**22, 1, 1), pads=[65536] * 4, strides=[65536] * 2),
        "the model needs .* GiB",
    ),
    "slice of nothing": (one_node("Slice", opset=9), "Slice node 'n' lacks its starts"),
    "mean of nothing": (one_node("Mean", ("",)), "Mean node 'n'"),
    "weights without axes": (one_node("ConvTranspose", ("x", "w"), constants={"w": ones(5)}), "ConvTranspose node 'n'"),
    "stride 0": (conv(strides=[0, 0]), "Conv node 'n' has strides"),
    "stride beyond": (conv(strides=[2**40, 1]), "Conv node 'n' has strides"),
    "dilation 0": (conv(dilations=[0, 1]), "Conv node 'n' has dilations"),
    "dilation beyond": (conv(dilations=[65536, 65536]), "Conv node 'n' has windows of 131073 pixels"),
    "kernel 0": (conv((4, 4, 0, 3)), "Conv node 'n' has kernel_shape"),
    "pads too few": (conv(pads=[1]), "Conv node 'n' has pads"),
    "group beyond": (conv(group=2**40), "Conv node 'n' has an input of 4 channels"),
    "group negative": (conv(group=-1), "Conv node 'n' has an input of 4 channels"),
    "weights for others": (conv((4, 3, 3, 3)), "Conv node 'n' has an input of 4 channels"),
    "pool kernel": (one_node("MaxPool", kernel_shape=[2**40, 1]), "MaxPool node 'n' has kernel_shape"),
    "pool of padding": (one_node("MaxPool", kernel_shape=[2, 2], pads=[2, 2, 2, 2]), "MaxPool node 'n' has pads"),
    "normalise over": (one_node("LRN", size=2**40), "LRN node 'n' has size"),
    "stretch": (
        one_node("Resize", ("x", "", "f"), constants={"f": np.array([1, 1, 3e38, 1], np.float32)}),
        "Resize node 'n' resizes .* which is larger than any tensor",
    ),
    "stretch by infinity": (
        one_node("Resize", ("x", "", "f"), constants={"f": np.array([1, 1, INF, NAN], np.float32)}),
        "Resize node 'n' resizes ",
    ),
    "stretch to nothing": (
        one_node("Resize", ("x", "", "", "s"), constants={"s": whole(1, 4, 0, -9)}),
        "Resize node 'n' resizes ",
    ),
    # Attributes that are not what they should be.
    "leak NaN": (one_node("LeakyRelu", alpha=NAN), r"LeakyRelu node 'n' has the attribute alpha, .*\(NaN\)"),
    "elu NaN": (one_node("Elu", alpha=NAN), r"Elu node 'n' has the attribute alpha, .*\(NaN\)"),
    "epsilon NaN": (
        one_node("BatchNormalization", ["x", *"sbmv"], constants=NORM, epsilon=NAN),
        r"BatchNormalization node 'n' has the attribute epsilon, .*\(NaN\)",
    ),
    "clip NaN": (one_node("Clip", ("x", "c"), constants={"c": np.float32(NAN)}), "Clip node 'n' clips at NaN"),
    "alpha NaN": (
        one_node("Gemm", ("x", "w"), x=(2, 3), constants={"w": ones(3, 4)}, alpha=NAN),
        r"Gemm node 'n' has the attribute alpha, .*\(NaN\)",
    ),
    "pads as text": (conv(pads="all"), "Conv node 'n' has the attribute pads, which must be a list of integers"),
    "group as tensor": (
        conv(group=helper.make_tensor("g", TensorProto.INT64, [1], [1])),
        "Conv node 'n' has the attribute group, which must be an integer",
    ),
    "group as float": (conv(group=1.0), "Conv node 'n' has the attribute group, which must be an integer"),
    "axis as list": (one_node("Softmax", axis=[1]), "Softmax node 'n' has the attribute axis"),
    "axis beyond": (one_node("Softmax", axis=-(2**63)), "Softmax node 'n' names the axis"),
    "attribute of passes": (one_node("MaxPool", kernel=[2, 2], strides=[1, 1], pads=[0] * 4), "the attribute 'kernel'"),
    "attribute of nobody": (one_node("Sigmoid", axis=1), "Sigmoid node 'n' has the attribute 'axis', which"),
    "attribute twice": (attribute_twice(), "LeakyRelu node 'n' has the attribute 'alpha' twice"),
    "subgraph": (subgraph(AttributeProto.GRAPH), "Relu node 'n' has the attribute 'body', which Relu does not"),
    "subgraphs": (
        subgraph(AttributeProto.GRAPHS),
        "Relu node 'n': the attribute 'body' is of a kind the engine does not",
    ),
    # Recurrences.
    "no weights": (one_node("GRU", ("x", "", "r"), x=(1, 3, 2), constants={"r": ones(1, 15, 5)}), "lacks its input 2"),
    "no diagonal": (one_node("Trilu", ("x", "k"), x=(4, 5), constants={"k": whole()}), "needs one diagonal"),
    "direction": (lstm(direction="sideways"), "LSTM node 'n' has direction 'sideways'"),
    "hidden size": (lstm(hidden_size=2**40), "LSTM node 'n' has hidden_size"),
    "directions missing": (lstm(direction="bidirectional"), "LSTM node 'n' needs input 2 of the shape"),
    "lengths": (
        one_node(
            "LSTM",
            ("x", "w", "r", "", "l"),
            x=(3, 1, 4),
            constants={"w": ones(1, 20, 4), "r": ones(1, 20, 5), "l": whole(2**40)},
        ),
        "LSTM node 'n' has sequences of the lengths",
    ),
    # Inputs, names and wires.
    "too many inputs": (one_node("Relu", ("x", "x")), "Relu node 'n' has 2 inputs, but Relu takes 1 at most"),
    "too few inputs": (one_node("Conv", ("x",)), "Conv node 'n' lacks its input 2"),
    "no inputs": (one_node("Concat", (), axis=0), "Concat node 'n' lacks inputs"),
    "input left out": (one_node("Add", ("", "x")), "Add node 'n' lacks its input 1"),
    "nothing to name": (one_node("Identity", ()), "Identity node 'n' lacks its input 1"),
    "cycle": (cycle(), "needs, directly or through others, its own output"),
    "itself": (one_node("Add", ("x", "y")), "Add node 'n' needs, directly or through others, its own output"),
    "constant twice": (constant_twice(), "it holds the tensor 'c' twice"),
    "input beyond all": (one_node("Relu", x=(2**62, 2**62)), "the input 'x' has the impossible shape"),
    "input of many axes": (one_node("Relu", x=(1,) * 99), "the input 'x' has the impossible shape"),
    "input larger than memory": (one_node("Relu", x=(1, 2**30)), "the model needs .* GiB for its activations"),
    "no float": (renamed_tensor([1], TensorProto.COMPLEX64, bytes(8)), "the tensor 'c' has the ONNX element type"),
    "negative tensor": (renamed_tensor([-1, -1], raw=bytes(4)), "the tensor 'c' has the impossible shape"),
    "no element of a huge tensor": (renamed_tensor([0, 2**63 - 1]), "the tensor 'c' has the impossible shape"),
    "overflowing tensor": (renamed_tensor([2**32, 2**32]), "the tensor 'c' has the impossible shape"),
    "short tensor": (renamed_tensor([BIG], raw=bytes(4)), "the tensor 'c' has shape .* but holds 1 values"),
    "name not UTF-8": (invalid_utf8("name"), "a name is not UTF-8"),
    "operator not UTF-8": (invalid_utf8("operator"), "a name is not UTF-8"),
    "endless name": (one_node("Floor" * 10**6), "uses an operator the engine does not have"),
    "millions of nodes": (empty_fields(2**22), "it has more than .* fields, which no network has"),
}
"""Name → the file, and what is said of it."""

HARMLESS = {
    "no units": lstm(hidden=0),
    "nodes of one name": many_nodes(50, "same"),
    "fifty thousand nodes": many_nodes(50_000, ""),
    "inputs left out at the end": one_node("Relu", ("x", "", "")),
    "input of size 0, which is open": one_node("Relu", x=(1, 0, 3, 3)),
    "input of size -5, which is open": one_node("Relu", x=(1, -5, 3, 3)),
    "text not UTF-8": one_node("Conv", ("x", "w"), constants={"w": ones(4, 4, 3, 3)}, auto_pad=b"VALID"),
}
"""Strange, but sound."""


def outcome(path):
    """Return what loading says, or what should not have happened."""
    try:
        Session(path, threads=1)
    except PowerlabError as error:
        return str(error)
    except BaseException:
        return "".join(traceback.format_exc())
    return ""


def limit_room():
    vms = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (vms + ROOM_BYTES, vms + ROOM_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


def main(folder):
    limit_room()
    found = {}
    for name, data in [*((name, data) for name, (data, _) in HOSTILE.items()), *HARMLESS.items()]:
        path = folder / f"{name.replace(' ', '-')}.onnx"
        path.write_bytes(data)
        found[name] = outcome(path)
        path.unlink()
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
