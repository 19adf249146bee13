"""Operators that compute with quantized tensors: each is an operator on floats, and what its inputs express.

ONNX has QLinearConv, QLinearMatMul, ConvInteger and MatMulInteger; the others are ONNX Runtime's, of the domain
com.microsoft, as its tools write them.

Sources: https://onnx.ai/onnx/operators/onnx__QLinearConv.html and its neighbours;
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from powerlab.engine.ir.graph import Node, TensorInfo
from powerlab.engine.ops import activation, convolution, elementwise, functions, matrix, moving, pooling, reducing
from powerlab.engine.ops.base import Operator
from powerlab.engine.ops.view import FLOAT32, NodeView, Spec

INT32: np.dtype[Any] = np.dtype(np.int32)


class Operand(Struct, frozen=True):
    """Where a node has a quantized tensor.

    Attributes:
        value: the input that holds it.
        scale: the input with its scale; None: 1.
        zero_point: the input with its zero point, which may be left out; None: 0.
        axis: to which axis several scales or zero points belong, counted from the front or the back.
    """

    value: int
    scale: int | None = None
    zero_point: int | None = None
    axis: int = 1


Attributes = Mapping[str, object]


class Quantized(Struct, frozen=True, kw_only=True):
    """An operator on quantized tensors.

    Attributes:
        operator: the operator on floats.
        rule: the rule of that.
        operands: what it computes with, in the order of ``operator``.
        made: the inputs with scale and zero point of the result; None: it is int32, or float32 where ``floats`` says.
        bias: the input with numbers that are added: int32 in steps of the product of the operands' scales, or floats.
        floats: whether it makes float32.
        attributes: those of ``operator``, from a node's own.
    """

    operator: str
    rule: Operator
    operands: Callable[[Node], tuple[Operand, ...]]
    made: tuple[int, int] | None = None
    bias: int | None = None
    floats: bool = False
    attributes: Callable[[NodeView], Attributes] = lambda view: view.node.attributes

    def infer(self, view: NodeView) -> Spec:
        """Return the shape and type of what a node makes; everything it cannot do without is checked."""
        for operand in self.operands(view.node):
            if view.dtype(operand.value).kind not in "iu":
                view.fail(f"has {view.dtype(operand.value)} as input {operand.value + 1}; it computes with integers")
            if operand.scale is not None:
                view.floats(operand.scale)
        if self.made is not None and (view.has(self.made[0]) or not self.floats):
            view.floats(self.made[0])
        shape, _ = self.rule.infer(self.float_view(view))
        return shape, self.dtype(view)

    def dtype(self, view: NodeView) -> np.dtype[Any]:
        """Return the type of what a node makes."""
        if self.made is None or not view.has(self.made[0]):
            return INT32 if self.made is None and not self.floats else FLOAT32
        return view.dtype(self.made[1]) if view.has(self.made[1]) else view.dtype(self.operands(view.node)[0].value)

    def float_view(self, view: NodeView) -> NodeView:
        """Return the view of the node on floats that stands behind one."""
        places = [operand.value for operand in self.operands(view.node)]
        if self.bias is not None and view.has(self.bias):
            places.append(self.bias)
        infos = tuple(TensorInfo(view.node.inputs[place], view.shape(place)) for place in places)
        names = tuple(info.name for info in infos)
        node = Node(self.operator, view.node.name, names, view.node.outputs, self.attributes(view))
        return NodeView(node, infos, (None,) * len(infos))


def _pair(*, axes: tuple[int, int] = (1, 1)) -> Callable[[Node], tuple[Operand, ...]]:
    """Return two operands, each followed by its scale and its zero point."""
    left, right = axes
    return lambda _node: (Operand(0, 1, 2, left), Operand(3, 4, 5, right))


def _one(_node: Node) -> tuple[Operand, ...]:
    return (Operand(0, 1, 2),)


def _whole(*, axes: tuple[int, int]) -> Callable[[Node], tuple[Operand, ...]]:
    left, right = axes
    return lambda _node: (Operand(0, None, 2, left), Operand(1, None, 3, right))


def _joined(node: Node) -> tuple[Operand, ...]:
    return tuple(Operand(at, at + 1, at + 2) for at in range(2, len(node.inputs), 3))


def _of_gemm(node: Node) -> tuple[Operand, ...]:
    return Operand(0, 1, 2), Operand(3, 4, 5, 0 if node.attributes.get("transB", 0) else 1)


def _without(*names: str) -> Callable[[NodeView], Attributes]:
    def left(view: NodeView) -> Attributes:
        if view.integer("channels_last", 0):
            view.fail("has its channels last, which the engine does not read; quantize the model with channels first")
        return {name: value for name, value in view.node.attributes.items() if name not in names}

    return left


def _softmax(view: NodeView) -> Attributes:
    """Return the axis; until opset 13 Softmax saw its input as a matrix, rows before ``axis``, columns from it on."""
    old = view.integer("opset", 13) < 13
    axis = view.integer("axis", 1 if old else -1)
    return {"axis": axis, "flattens": 1} if old else {"axis": axis}


def _beta(view: NodeView) -> Attributes:
    """Let the factor of a QGemm's product also be that of its bias, which is in steps of the product."""
    alpha = view.number("alpha", 1.0)
    return {**view.node.attributes, "alpha": alpha, "beta": alpha}


_CONV, _ADD, _MUL = convolution.CONV, elementwise.OPERATORS["Add"], elementwise.OPERATORS["Mul"]

QUANTIZED: dict[str, Quantized] = {
    "ConvInteger": Quantized(operator="Conv", rule=_CONV, operands=_whole(axes=(1, 0))),
    "MatMulInteger": Quantized(operator="MatMul", rule=matrix.MATMUL, operands=_whole(axes=(-2, -1))),
    "QLinearConv": Quantized(operator="Conv", rule=_CONV, operands=_pair(axes=(1, 0)), made=(6, 7), bias=8),
    "QLinearMatMul": Quantized(operator="MatMul", rule=matrix.MATMUL, operands=_pair(axes=(-2, -1)), made=(6, 7)),
}
"""Operator of ONNX → how it is computed."""

MICROSOFT: dict[str, Quantized] = {
    "MatMulIntegerToFloat": Quantized(
        operator="MatMul",
        rule=matrix.MATMUL,
        operands=lambda _node: (Operand(0, 2, 4, -2), Operand(1, 3, 5, -1)),
        floats=True,
    ),
    "QGemm": Quantized(
        operator="Gemm", rule=matrix.GEMM, operands=_of_gemm, made=(7, 8), bias=6, attributes=_beta, floats=True
    ),
    "QLinearAdd": Quantized(operator="Add", rule=_ADD, operands=_pair(), made=(6, 7)),
    "QLinearAveragePool": Quantized(
        operator="AveragePool", rule=pooling.POOL, operands=_one, made=(3, 4), attributes=_without("channels_last")
    ),
    "QLinearConcat": Quantized(operator="Concat", rule=moving.OPERATORS["Concat"], operands=_joined, made=(0, 1)),
    "QLinearGlobalAveragePool": Quantized(
        operator="GlobalAveragePool",
        rule=pooling.GLOBAL_POOL,
        operands=_one,
        made=(3, 4),
        attributes=_without("channels_last"),
    ),
    "QLinearLeakyRelu": Quantized(operator="LeakyRelu", rule=activation.LEAKY_RELU, operands=_one, made=(3, 4)),
    "QLinearMul": Quantized(operator="Mul", rule=_MUL, operands=_pair(), made=(6, 7)),
    "QLinearReduceMean": Quantized(
        operator="ReduceMean", rule=reducing.OPERATORS["ReduceMean"], operands=_one, made=(3, 4)
    ),
    "QLinearSigmoid": Quantized(operator="Sigmoid", rule=functions.OPERATORS["Sigmoid"], operands=_one, made=(3, 4)),
    "QLinearSoftmax": Quantized(
        operator="Softmax", rule=activation.SOFTMAX, operands=_one, made=(3, 4), attributes=_softmax
    ),
}
"""Operator of ONNX Runtime → how it is computed."""


def _dynamic_product(view: NodeView) -> Spec:
    view.floats(2)  # the scale of the weights
    infos = (TensorInfo("a", view.floats(0)), TensorInfo("b", view.shape(1)))
    return matrix.MATMUL.infer(NodeView(view.node, infos, (None, None)))


OPERATORS: dict[str, Operator] = {
    **{name: Operator(one.infer) for name, one in {**QUANTIZED, **MICROSOFT}.items()},
    "DynamicQuantizeMatMul": Operator(_dynamic_product),
}
"""Operator → rule."""

OF_MICROSOFT = frozenset({*MICROSOFT, "DynamicQuantizeMatMul"})
"""Operators that are none of ONNX's own."""
