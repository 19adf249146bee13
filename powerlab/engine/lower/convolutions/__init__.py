"""Convolutions: algorithms, what each costs, and who chooses among them."""

from __future__ import annotations

from powerlab.engine.graph import Node
from powerlab.engine.lower.builder import Builder
from powerlab.engine.lower.conv_shape import ConvShape, conv_shape, conv_shapes, padded_tensors
from powerlab.engine.lower.convolutions.algorithm import Algorithm
from powerlab.engine.lower.convolutions.choosing import Chooser, by_cost
from powerlab.engine.lower.convolutions.table import ALGORITHMS

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Chooser",
    "ConvShape",
    "by_cost",
    "conv_shape",
    "conv_shapes",
    "lower_conv",
    "padded_tensors",
]


def lower_conv(builder: Builder, node: Node) -> None:
    """Lower a FusedConv in the way that was chosen for it."""
    shape, choice = builder.chosen(node)
    ALGORITHMS[choice.algorithm].emit(builder, node, shape, choice)
