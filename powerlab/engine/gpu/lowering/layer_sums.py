"""Sums behind layers whose kernels add, as that of a convolution does: fully connected ones of many rows, and volumes'.

On the processor these are steps of their own, so no pass makes them one node.
"""

from __future__ import annotations

from msgspec import Struct

from powerlab.engine.gpu.activations import finish_of
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.lowering.dense import FEW_ROWS, emit_rows
from powerlab.engine.gpu.lowering.volume import emit_conv_volume
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import is_linear


class LayerSum(Struct, frozen=True):
    """An Add of which one side is a layer that nobody else reads.

    It is computed where the Add stands, so that what is added is there before.

    Attributes:
        layer: the FusedGemm or FusedVolumeConv.
        views: Reshapes between a FusedGemm and the Add, the last one first.
        add: the Add.
        other: what is added.
    """

    layer: Node
    views: tuple[Node, ...]
    add: Node
    other: str

    @property
    def covered(self) -> tuple[Node, ...]:
        """Return all nodes but the Add."""
        return self.layer, *self.views


def find_layer_sums(graph: Graph) -> list[LayerSum]:
    """Return every sum of a graph whose layer's kernel can add; of two layers the first side."""
    producers, consumers, outputs = graph.producers(), graph.consumers(), graph.output_names()

    def sole(name: str) -> Node | None:
        """Return what makes a tensor that one node reads."""
        return producers.get(name) if len(consumers[name]) == 1 and name not in outputs else None

    def of_side(add: Node, name: str, other: str) -> LayerSum | None:
        node, views = sole(name), []
        while node is not None and node.op_type == "Reshape":
            views.append(node)
            node = sole(node.inputs[0])
        if node is None or node.op_type not in ("FusedGemm", "FusedVolumeConv") or not is_linear(node):
            return None
        if node.op_type == "FusedVolumeConv":
            return None if views else LayerSum(node, (), add, other)
        rows, outputs_of_row = graph.shape(node.outputs[0])
        return LayerSum(node, tuple(views), add, other) if rows > FEW_ROWS and outputs_of_row % 4 == 0 else None

    found: list[LayerSum] = []
    for node in graph.nodes:
        if node.op_type == "Add":
            sides = zip(node.inputs, node.inputs[::-1], strict=True)
            found += [one for side in sides if (one := of_side(node, *side)) is not None][:1]
    return found


def lower_layer_sum(builder: Builder, one: LayerSum) -> None:
    """Append the layer, which adds: rows of whole blocks lie in blocks as they do in rows."""
    source, made, finish = builder.blocks(one.layer.inputs[0]), one.add.outputs[0], finish_of(one.add)
    if one.layer.op_type == "FusedVolumeConv":
        emit_conv_volume(builder, one.layer, (builder.new_blocks(made), source, builder.blocks(one.other)), finish)
    else:
        emit_rows(builder, one.layer, (builder.new_rows(made), source, builder.rows(one.other)), finish)
