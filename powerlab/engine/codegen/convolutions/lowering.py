"""Emits the steps of a convolution with the algorithm that was chosen for it.

A module of its own, because the builder asks :mod:`.conv_shape` for shapes and the algorithms write into the builder.
"""

from __future__ import annotations

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.algorithms.table import ALGORITHMS
from powerlab.engine.ir.graph import Node


def lower_conv(builder: Builder, node: Node) -> None:
    """Lower a FusedConv in the way that was chosen for it."""
    shape, choice = builder.chosen(node)
    ALGORITHMS[choice.algorithm].emit(builder, node, shape, choice)
