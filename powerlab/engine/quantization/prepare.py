"""A float network as it is quantized: constants folded, batch norms in the weights before them, nothing dead.

Source: Jacob et al., https://arxiv.org/abs/1712.05877, section 3.2.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.expand.quantized import expand_quantized
from powerlab.engine.passes.fold.constants import fold_constants
from powerlab.engine.passes.rewriting import Rewriter, Sole, fuse_into_producers
from powerlab.engine.passes.simplify.dead_nodes import drop_dead


def prepared_for_quantization(graph: Graph) -> Graph:
    """Return a loaded graph as calibration and quantization want it; it computes the same."""
    return drop_dead(fuse_into_producers(fold_constants(expand_quantized(graph)), _fold_batch_norm))


def _fold_batch_norm(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, ...] | None:
    graph = rewriter.graph
    if node.op_type != "BatchNormalization" or node.attributes.get("training_mode", 0):
        return None
    conv = sole(node.inputs[0])
    constants = rewriter.constants.keys() | graph.kept_constants.keys()
    if conv is None or conv.op_type != "Conv" or not {*filter(None, conv.inputs[1:]), *node.inputs[1:]} <= constants:
        return None
    gamma, beta, mean, variance = (rewriter.value(name).astype(np.float64) for name in node.inputs[1:5])
    scale = gamma / np.sqrt(variance + NodeView.of(graph, node).number("epsilon", 1e-5))
    bias = rewriter.value(conv.inputs[2]) if conv.input(2) else np.zeros_like(mean)
    kept = rewriter.kept(conv.inputs[1])
    factors = scale.reshape(-1, *(1,) * (len(kept.shape) - 1)).astype(np.float32)
    weight = rewriter.constant(f"{conv.inputs[1]}.folded", derived(kept, kept.shape, lambda value: value * factors))
    shift = rewriter.constant(f"{node.outputs[0]}.bias", ((bias - mean) * scale + beta).astype(np.float32))
    return replace(conv, inputs=(conv.inputs[0], weight, shift), outputs=node.outputs[:1]), conv
