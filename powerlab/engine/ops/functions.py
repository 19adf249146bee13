"""Functions of one number: Sigmoid, Log, Softplus, ... A new one is a line in :data:`FUNCTIONS` and its kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct

from powerlab.engine.ir.graph import Array
from powerlab.engine.ops.base import Operator
from powerlab.engine.ops.view import NodeView, Spec

Numbers = dict[str, tuple[str, float]]


class Function(Struct, frozen=True):
    """How a function is computed.

    Attributes:
        kernel: the family of its kernel.
        evaluate: its value in numpy, of the tensor and of its numbers in their order.
        numbers: field of the native step → the ONNX attribute and what it is where it is left out.
        whole: whether it takes integers too.
    """

    kernel: str
    evaluate: Callable[..., Any]
    numbers: Numbers
    whole: bool = False

    def given(self, view: NodeView) -> dict[str, float]:
        """Return the numbers of a node, by the fields of the native step."""
        return {field: view.number(name, usual) for field, (name, usual) in self.numbers.items()}

    def infer(self, view: NodeView) -> Spec:
        """Return the shape and type of the result."""
        self.given(view)  # refuses what is not a number
        if self.whole and view.dtype(0).kind in "iu":
            return view.shape(0), view.dtype(0)
        return view.floats(0), view.dtype(0)

    def value(self, view: NodeView) -> Array:
        """Return the value of a node whose input is known."""
        return np.asarray(self.evaluate(view.value(0), *map(np.float32, self.given(view).values())))


def _simple(kernel: str, evaluate: Callable[..., Any], **numbers: float) -> Function:
    return Function(kernel, evaluate, {name: (name, usual) for name, usual in numbers.items()})


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def _erf(x: Array) -> Array:
    from math import erf

    return np.asarray(np.vectorize(erf, otypes=[np.float64])(x) if x.size else x)


def _gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + _erf(x / np.sqrt(2))))


def _gelu_tanh(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


def _shrink(x: Array, threshold: float, bias: float) -> Array:
    return np.where(x < -threshold, x + bias, np.where(x > threshold, x - bias, np.zeros_like(x)))


FUNCTIONS: dict[str, Function] = {
    "Abs": Function("abs", np.abs, {}, whole=True),
    "Acos": _simple("acos", np.arccos),
    "Acosh": _simple("acosh", np.arccosh),
    "Asin": _simple("asin", np.arcsin),
    "Asinh": _simple("asinh", np.arcsinh),
    "Atan": _simple("atan", np.arctan),
    "Atanh": _simple("atanh", np.arctanh),
    "Ceil": _simple("ceil", np.ceil),
    "Celu": _simple("celu", lambda x, a: np.maximum(x, 0) + np.minimum(0, a * np.expm1(x / a)), alpha=1.0),
    "Cos": _simple("cos", np.cos),
    "Cosh": _simple("cosh", np.cosh),
    "Elu": _simple("elu", lambda x, a: np.where(x < 0, a * np.expm1(x), x), alpha=1.0),
    "Erf": _simple("erf", _erf),
    "Exp": _simple("exp", np.exp),
    "Floor": _simple("floor", np.floor),
    "HardSigmoid": _simple("hard_sigmoid", lambda x, a, b: np.clip(a * x + b, 0, 1), alpha=0.2, beta=0.5),
    "HardSwish": _simple("hard_swish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "Log": _simple("log", np.log),
    "Mish": _simple("mish", lambda x: x * np.tanh(_softplus(x))),
    "Neg": Function("neg", np.negative, {}, whole=True),
    "Reciprocal": _simple("reciprocal", lambda x: 1 / x),
    "Round": _simple("round", np.rint),
    "Selu": Function(
        "selu",
        lambda x, a, g: np.where(x > 0, g * x, g * a * np.expm1(x)),
        {"alpha": ("alpha", 1.67326319217681884765625), "beta": ("gamma", 1.05070102214813232421875)},
    ),
    "Shrink": Function("shrink", _shrink, {"alpha": ("lambd", 0.5), "beta": ("bias", 0.0)}),
    "Sigmoid": _simple("sigmoid", _sigmoid),
    "Sign": Function("sign", np.sign, {}, whole=True),
    "Sin": _simple("sin", np.sin),
    "Sinh": _simple("sinh", np.sinh),
    "Softplus": _simple("softplus", _softplus),
    "Softsign": _simple("softsign", lambda x: x / (1 + np.abs(x))),
    "Sqrt": _simple("sqrt", np.sqrt),
    "Swish": _simple("swish", lambda x, a: x * _sigmoid(a * x), alpha=1.0),
    "Tan": _simple("tan", np.tan),
    "Tanh": _simple("tanh", np.tanh),
    "ThresholdedRelu": _simple("thresholded_relu", lambda x, a: np.where(x > a, x, np.zeros_like(x)), alpha=1.0),
}
"""Operator → how it is computed."""


def approximates_by_tanh(view: NodeView) -> bool:
    """Say whether a Gelu node is the approximation by tanh, which is a function of its own."""
    approximate = view.text("approximate", "none")
    if approximate not in ("none", "tanh"):
        view.fail(f"approximates by {approximate!r}; there is 'tanh' or 'none'")
    return approximate == "tanh"


def _infer_gelu(view: NodeView) -> Spec:
    approximates_by_tanh(view)
    return view.floats(0), view.dtype(0)


OPERATORS: dict[str, Operator] = {
    **{name: Operator(function.infer, function.value) for name, function in FUNCTIONS.items()},
    "Gelu": Operator(_infer_gelu, lambda view: (_gelu_tanh if approximates_by_tanh(view) else _gelu)(view.value(0))),
}
"""Operator → rule."""

KERNELS = {
    **{name: function.kernel for name, function in FUNCTIONS.items()},
    "FakeQuantize": "fake_quantize",
    "Gelu": "gelu",
    "GeluTanh": "gelu_tanh",
    "Silu": "silu",
}
"""Operator of an optimised graph → family of kernels."""
