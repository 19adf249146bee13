"""Convolutions: algorithms, what each costs, and who chooses among them."""

from __future__ import annotations

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.algorithms.algorithm import Algorithm
from powerlab.engine.codegen.convolutions.algorithms.table import ALGORITHMS
from powerlab.engine.codegen.convolutions.choosing import Chooser, by_cost
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape, conv_shape, conv_shapes, padded_tensors
from powerlab.engine.ir.graph import Node

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
