"""How kernels end: numbers and the function's code for ``shaders/finish.glsl``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import number
from powerlab.engine.ir.graph import Node
from powerlab.engine.ops.activation import slope_of
from powerlab.engine.ops.functions import FUNCTIONS as NUMBERS

FUNCTIONS: Mapping[str, int] = {
    name: code
    for code, name in enumerate(
        (
            "",
            "Abs",
            "Ceil",
            "Celu",
            "Cos",
            "Elu",
            "Erf",
            "Exp",
            "Floor",
            "HardSigmoid",
            "HardSwish",
            "Log",
            "Mish",
            "Neg",
            "Reciprocal",
            "Round",
            "Selu",
            "Sigmoid",
            "Sign",
            "Sin",
            "Softplus",
            "Softsign",
            "Sqrt",
            "Swish",
            "Tanh",
            "ThresholdedRelu",
            "Gelu",
            "GeluTanh",
            "Silu",
        )
    )
}
"""Operator → its code in the shader."""

_INFINITE = float("inf")
Finish = tuple[int, tuple[float, float, float, float, float]]

PLAIN: Finish = (0, (-_INFINITE, _INFINITE, 1.0, 0.0, 0.0))


def finish_of(node: Node) -> Finish:
    """Return the function's code, and low, high, slope, alpha and beta, with which a node's kernel ends.

    Raises:
        PowerlabError: the shaders have no such function.
    """
    low, high = cast("tuple[float, float]", node.attributes["clamp"])
    before = (float(low), float(high), slope_of(node))
    return _with_function(node, str(node.attributes.get("function", "")), before)


def finish_by(node: Node) -> Finish:
    """Return the same of a node that is a function itself."""
    return _with_function(node, node.op_type, (-_INFINITE, _INFINITE, 1.0))


def finish_by_function(node: Node) -> Finish:
    """Return the same of a node's function alone, without what comes before it."""
    return _with_function(node, str(node.attributes["function"]), (-_INFINITE, _INFINITE, 1.0))


def _with_function(node: Node, function: str, before: tuple[float, float, float]) -> Finish:
    if function not in FUNCTIONS:
        raise PowerlabError(f"{node} computes {function}, which the engine does not on a GPU yet; use the device cpu.")
    fields = NUMBERS[function].numbers if function in NUMBERS else {}
    alpha, beta = (number(node, name) if name in fields else 0.0 for name in ("alpha", "beta"))
    return FUNCTIONS[function], (*before, alpha, beta)
