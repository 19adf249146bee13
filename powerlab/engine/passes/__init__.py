"""Graph rewriting: the passes that turn a loaded graph into the few fused operators of the native core.

A pass is one function Graph → Graph in a file of its own and one line in the table; the order is the table's. Every
pass keeps what the graph computes, and running all of them again changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from powerlab.domain.errors import PowerlabError
from powerlab.engine.graph import Graph, quoted
from powerlab.engine.passes.check_lowered import LOWERED, check_lowered
from powerlab.engine.passes.drop_dead import drop_dead
from powerlab.engine.passes.expand_attention import expand_attention
from powerlab.engine.passes.expand_einsum import expand_einsum
from powerlab.engine.passes.expand_rotary import expand_rotary
from powerlab.engine.passes.expand_training import expand_training
from powerlab.engine.passes.fold_constants import fold_constants
from powerlab.engine.passes.fold_factors import fold_factors
from powerlab.engine.passes.fold_row_biases import fold_row_biases
from powerlab.engine.passes.fold_scales import fold_scales
from powerlab.engine.passes.fuse_chains import fuse_chains
from powerlab.engine.passes.fuse_clamps import fuse_clamps
from powerlab.engine.passes.fuse_gelus import fuse_gelus
from powerlab.engine.passes.fuse_layer_norms import fuse_layer_norms
from powerlab.engine.passes.fuse_residuals import fuse_residuals
from powerlab.engine.passes.fuse_transposes import fuse_transposes
from powerlab.engine.passes.lower_activations import lower_activations
from powerlab.engine.passes.lower_arithmetic import lower_arithmetic
from powerlab.engine.passes.lower_convolutions import lower_convolutions
from powerlab.engine.passes.lower_elementwise import lower_elementwise
from powerlab.engine.passes.lower_functions import lower_functions
from powerlab.engine.passes.lower_matrices import lower_matrices
from powerlab.engine.passes.lower_moves import lower_moves
from powerlab.engine.passes.lower_norms import lower_norms
from powerlab.engine.passes.lower_pools import lower_pools
from powerlab.engine.passes.lower_recurrences import lower_recurrences
from powerlab.engine.passes.lower_reductions import lower_reductions
from powerlab.engine.passes.lower_resizes import lower_resizes
from powerlab.engine.passes.lower_row_norms import lower_row_norms
from powerlab.engine.passes.lower_sampling import lower_sampling
from powerlab.engine.passes.lower_views import lower_views
from powerlab.engine.passes.nest_concats import nest_concats
from powerlab.engine.passes.pool_first import pool_first
from powerlab.engine.passes.simplify_views import simplify_views
from powerlab.engine.passes.sink_views import sink_views

PASSES: tuple[Callable[[Graph], Graph], ...] = (
    expand_einsum,
    expand_attention,
    expand_rotary,
    expand_training,
    fold_constants,
    fuse_layer_norms,
    fuse_gelus,
    lower_row_norms,
    lower_recurrences,
    lower_views,
    lower_activations,
    lower_pools,
    lower_resizes,
    lower_sampling,
    lower_norms,
    lower_functions,
    lower_arithmetic,
    lower_elementwise,
    lower_convolutions,
    lower_matrices,
    lower_reductions,
    lower_moves,
    sink_views,
    simplify_views,
    fuse_transposes,
    nest_concats,
    pool_first,
    fold_row_biases,
    fold_factors,
    fold_scales,
    fuse_residuals,
    fuse_clamps,
    fuse_chains,
    drop_dead,
    check_lowered,
)
"""Fusions come last and after dead nodes are gone: a tensor only dead nodes read is free to fuse."""

__all__ = ["LOWERED", "PASSES", "optimise", "optimise_for_others"]


def optimise(graph: Graph) -> Graph:
    """Return the graph in the operators of ``LOWERED``, with the same inputs and outputs.

    Raises:
        PowerlabError: the graph needs what the engine cannot do, naming the node, or more memory than there is.
    """
    return _rewritten(graph, PASSES)


def optimise_for_others(graph: Graph) -> Graph:
    """Return the graph as other engines get it: each node stands for an operator of theirs, so chains are left apart.

    Raises:
        PowerlabError: as :func:`optimise` does.
    """
    return _rewritten(graph, [rewrite for rewrite in PASSES if rewrite is not fuse_chains])


def _rewritten(graph: Graph, passes: Iterable[Callable[[Graph], Graph]]) -> Graph:
    name = graph.name
    try:
        for rewrite in passes:
            graph = rewrite(graph)
    except MemoryError:
        raise PowerlabError(f"the model {quoted(name)} does not fit into memory; give a smaller model.") from None
    return graph
