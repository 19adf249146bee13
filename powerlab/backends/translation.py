"""How a node of powerlab's optimised graph is said in another engine; what nobody has translated is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Node

_Rule = TypeVar("_Rule")

KNOWN_ATTRIBUTES = frozenset(
    {
        "alpha",
        "axis",
        "beta",
        "bias",
        "clamp",
        "count_include_pad",
        "dilations",
        "direction",
        "epsilon",
        "factors",
        "group",
        "kernel",
        "keys",
        "left",
        "numbers",
        "pads",
        "perm",
        "queries",
        "right",
        "size",
        "slope",
        "strides",
        "values",
    }
)
"""What the translations read; another attribute would change what a node computes without their knowing."""

KNOWN_OF_BYTES = frozenset(
    {
        *("axis", "count_include_pad", "dilations", "factors", "floats", "group", "high", "kernel", "kind", "low"),
        *("pads", "slope", "step", "strides", "x_ratio", "x_zero", "y_ratio", "y_zero", "zero"),
    }
)
"""The same of nodes on bytes."""


def rule_for(engine: str, rules: Mapping[str, _Rule], node: Node, known: frozenset[str] = KNOWN_ATTRIBUTES) -> _Rule:
    """Return the rule that translates a node.

    Args:
        engine: that the node is translated for.
        rules: operator → rule.
        node: to be translated.
        known: the attributes that the rules read.

    Raises:
        PowerlabError: there is none, or the node has an attribute that no rule knows.
    """
    if node.op_type not in rules or not known.issuperset(node.attributes):
        raise PowerlabError(f"{node} is not translated for {engine} yet; use another engine for this model.")
    return rules[node.op_type]
