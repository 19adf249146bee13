"""Reading the attributes of optimised nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from powerlab.engine.ir.graph import Node
from powerlab.engine.ops.activation import ends_in_function, slope_of
from powerlab.engine.ops.functions import FUNCTIONS, KERNELS


def integers(node: Node, name: str) -> tuple[int, ...]:
    """Return an attribute that is a sequence of integers."""
    return tuple(map(int, cast("Iterable[int]", node.attributes[name])))


def number(node: Node, name: str) -> float:
    """Return an attribute that is one number."""
    return float(cast("float", node.attributes[name]))


def number_or(node: Node, name: str, default: float) -> float:
    """Return an attribute that is one number, or what it is where there is none."""
    return number(node, name) if name in node.attributes else default


def clamp_fields(node: Node) -> dict[str, Any]:
    """Return the node's slope, clamp, function and whether a residual comes last, as fields of the native step."""
    low, high = cast("tuple[float, float]", node.attributes["clamp"])
    last = {"adds_last": True} if node.attributes.get("adds_last") else {}
    return {"low": float(low), "high": float(high), "slope": slope_of(node), **last, **function_fields(node)}


def function_fields(node: Node) -> dict[str, Any]:
    """Return the node's function, if it ends in one, as fields of the native step."""
    if not ends_in_function(node):
        return {}
    function = str(node.attributes["function"])
    numbers = FUNCTIONS[function].numbers if function in FUNCTIONS else ()
    return {"function": KERNELS[function], **{name: number(node, name) for name in numbers}}
