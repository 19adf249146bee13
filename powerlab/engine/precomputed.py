"""What a network computes of constants alone, and numpy cannot: computed once, when the network is loaded.

Exporters write a Resize of position embeddings, a pool of a mask of ones, the norm of learned queries. What numpy can
compute is folded by a pass (:mod:`powerlab.engine.passes.fold.constants`).
"""

from __future__ import annotations

from msgspec.structs import replace

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops import quantization, quantized
from powerlab.engine.passes import optimise
from powerlab.engine.passes.fold.constants import fold_constants
from powerlab.engine.planned import PlannedGraph, Planning
from powerlab.engine.prepared.prepared import prepare
from powerlab.engine.runtime.plan import thread_pool
from powerlab.engine.target.tiers import choose_tier

MOST_ELEMENTS = 2**24
"""Numbers that such nodes may make together; more are made anew in each run, and not kept."""

MOST_OPERATIONS = 2**32
"""A second or so: a file must not decide how long it takes to load."""

COMPUTED = frozenset(
    {
        *("AveragePool", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LpPool", "MaxPool"),
        *("BatchNormalization", "GroupNormalization", "InstanceNormalization", "LayerNormalization"),
        *("LpNormalization", "MeanVarianceNormalization", "RMSNormalization"),
        *("AffineGrid", "Conv", "Resize", "RotaryEmbedding", "Upsample"),
    }
)
"""Operators that numpy computes slowly or not at all, whose work is in proportion to their numbers or windows."""

_ROUNDING = frozenset({*quantization.OPERATORS, *quantized.OPERATORS})
"""Operators that say how numbers are held: they stay, for layers to be computed so."""


def precompute(graph: Graph) -> Graph:
    """Return a loaded graph with constants where its nodes would compute the same in every run.

    Raises:
        PowerlabError: the engine cannot compute what such a node asks for.
    """
    if not graph.inputs or graph.operators.isdisjoint(COMPUTED):
        return graph
    known = _of_constants(graph)
    outputs = tuple(graph.tensors[name] for node in known if node.op_type in COMPUTED for name in node.outputs if name)
    if not 0 < sum(info.elements for info in outputs) <= MOST_ELEMENTS:
        return graph
    part = replace(graph, nodes=tuple(known), inputs=(), outputs=outputs, outside={})
    part = fold_constants(part, leave=COMPUTED)
    planning = Planning(tier=choose_tier(), threads=1, spin_us=0)
    prepared = prepare(optimise(part, folded=True), planning.tier, planning.threads)
    if sum(step.flops for step in prepared.work) > MOST_OPERATIONS:
        return graph
    values = PlannedGraph(prepared, planning, thread_pool(planning.threads, planning.spin_us)).run({})
    return graph.rewritten([node for node in graph.nodes if values.keys().isdisjoint(node.outputs)], constants=values)


def _of_constants(graph: Graph) -> list[Node]:
    """Return the nodes that depend on no input of the graph, and on nothing that is rounded."""
    known = []
    varying = {info.name for info in graph.inputs}
    for node in graph.nodes:
        if varying.isdisjoint(node.inputs) and node.op_type not in _ROUNDING:
            known.append(node)
        else:
            varying.update(node.outputs)
    return known
