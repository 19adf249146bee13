"""Graph rewriting: the passes that turn a loaded graph into the few fused operators of the native core.

A pass is one function Graph → Graph in a file of its own and one line in the table; the order is the table's. Every
pass keeps what the graph computes, and running all of them again changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph, quoted
from powerlab.engine.passes.expand.attention import expand_attention
from powerlab.engine.passes.expand.einsum import expand_einsum
from powerlab.engine.passes.expand.powers import expand_powers
from powerlab.engine.passes.expand.quantized import expand_quantized
from powerlab.engine.passes.expand.rotary import expand_rotary
from powerlab.engine.passes.expand.running_products import expand_running_products
from powerlab.engine.passes.expand.spectra import expand_spectra
from powerlab.engine.passes.expand.training import expand_training
from powerlab.engine.passes.expand.unfolding import expand_unfolding
from powerlab.engine.passes.fold.batch_norms import fold_scales
from powerlab.engine.passes.fold.constants import fold_constants
from powerlab.engine.passes.fold.equal_elements import fold_equal_elements
from powerlab.engine.passes.fold.factors import fold_factors
from powerlab.engine.passes.fold.quantized_constants import fold_quantized_constants
from powerlab.engine.passes.fold.rows import fold_rows
from powerlab.engine.passes.fuse.activations import fuse_clamps, fuse_norm_clamps
from powerlab.engine.passes.fuse.chains import fuse_chains
from powerlab.engine.passes.fuse.conversions import fuse_conversions
from powerlab.engine.passes.fuse.functions import fuse_functions
from powerlab.engine.passes.fuse.gelus import fuse_gelus
from powerlab.engine.passes.fuse.group_norms import fuse_group_norms
from powerlab.engine.passes.fuse.l2_norms import fuse_l2_norms
from powerlab.engine.passes.fuse.layer_norms import fuse_layer_norms
from powerlab.engine.passes.fuse.multiply_adds import fuse_multiply_adds
from powerlab.engine.passes.fuse.residuals import fuse_residuals
from powerlab.engine.passes.fuse.transposes import fuse_transposes
from powerlab.engine.passes.legalize.activations import lower_activations
from powerlab.engine.passes.legalize.arithmetic import lower_arithmetic
from powerlab.engine.passes.legalize.check import LOWERED, check_lowered
from powerlab.engine.passes.legalize.constant_inputs import copy_constants
from powerlab.engine.passes.legalize.convolutions import lower_convolutions
from powerlab.engine.passes.legalize.data_movement import lower_moves
from powerlab.engine.passes.legalize.elementwise import lower_elementwise
from powerlab.engine.passes.legalize.functions import lower_functions
from powerlab.engine.passes.legalize.image_pads import keep_image_pads
from powerlab.engine.passes.legalize.matrices import lower_matrices
from powerlab.engine.passes.legalize.norms import lower_norms
from powerlab.engine.passes.legalize.pools import lower_pools
from powerlab.engine.passes.legalize.quantization import lower_quantization
from powerlab.engine.passes.legalize.recurrent import lower_recurrences
from powerlab.engine.passes.legalize.reductions import lower_reductions
from powerlab.engine.passes.legalize.resizes import lower_resizes
from powerlab.engine.passes.legalize.row_norms import lower_row_norms
from powerlab.engine.passes.legalize.sampling import lower_sampling
from powerlab.engine.passes.legalize.views import lower_views
from powerlab.engine.passes.quantized.bytes import compute_in_bytes
from powerlab.engine.passes.quantized.fake_quantization import round_as_floats
from powerlab.engine.passes.quantized.lookups import look_up_functions
from powerlab.engine.passes.quantized.moved_channels import move_bytes
from powerlab.engine.passes.quantized.moved_numbers import see_moves_of_floats
from powerlab.engine.passes.quantized.moved_pixels import move_pixels_as_bytes
from powerlab.engine.passes.quantized.repeated_rounding import drop_repeated_rounding
from powerlab.engine.passes.quantized.row_images import see_rows_as_images
from powerlab.engine.passes.quantized.rows import flatten_rows
from powerlab.engine.passes.simplify.channels_first import put_channels_first
from powerlab.engine.passes.simplify.dead_nodes import drop_dead
from powerlab.engine.passes.simplify.expands import drop_expands
from powerlab.engine.passes.simplify.nested_concats import nest_concats
from powerlab.engine.passes.simplify.outside_taps import drop_outside_taps
from powerlab.engine.passes.simplify.pool_before_conv import pool_first
from powerlab.engine.passes.simplify.signed_weights import sign_weights
from powerlab.engine.passes.simplify.view_sinking import sink_views
from powerlab.engine.passes.simplify.views import simplify_views

PASSES: tuple[Callable[[Graph], Graph], ...] = (
    expand_quantized,
    expand_einsum,
    expand_attention,
    expand_rotary,
    expand_training,
    fold_equal_elements,
    fold_constants,
    see_moves_of_floats,
    sign_weights,
    flatten_rows,
    see_rows_as_images,
    compute_in_bytes,
    drop_repeated_rounding,
    look_up_functions,
    move_pixels_as_bytes,
    move_bytes,
    round_as_floats,
    fold_quantized_constants,
    drop_expands,
    expand_running_products,
    expand_spectra,
    expand_unfolding,
    fuse_layer_norms,
    fuse_l2_norms,
    fuse_gelus,
    expand_powers,
    lower_row_norms,
    put_channels_first,
    lower_recurrences,
    lower_views,
    lower_activations,
    lower_pools,
    lower_resizes,
    lower_sampling,
    lower_norms,
    lower_functions,
    lower_arithmetic,
    lower_quantization,
    lower_elementwise,
    lower_convolutions,
    lower_matrices,
    lower_reductions,
    keep_image_pads,
    lower_moves,
    sink_views,
    simplify_views,
    fuse_group_norms,
    fuse_transposes,
    nest_concats,
    drop_outside_taps,
    pool_first,
    fold_rows,
    fold_factors,
    fold_scales,
    fuse_residuals,
    fuse_clamps,
    fuse_norm_clamps,
    fuse_functions,
    fuse_conversions,
    fuse_multiply_adds,
    fuse_chains,
    drop_dead,
    copy_constants,
    check_lowered,
)
"""Fusions come last and after dead nodes are gone: a tensor only dead nodes read is free to fuse."""

_FOR_CORES = (keep_image_pads, fuse_norm_clamps)
"""Passes whose nodes only the processor's kernels know."""

_NOT_IN_16_BITS = (
    look_up_functions,
    move_pixels_as_bytes,
    move_bytes,
    round_as_floats,
    fuse_conversions,
    fuse_chains,
)
"""Passes whose nodes only the processor's kernels know, and no kernel that computes in bfloat16 or float16."""

_FOR_OWN_KERNELS = (
    fuse_l2_norms,
    put_channels_first,
    fuse_group_norms,
    fuse_functions,
    fuse_multiply_adds,
    *_FOR_CORES,
    *_NOT_IN_16_BITS,
)
"""Passes whose nodes stand for no operator of another engine."""

__all__ = ["LOWERED", "PASSES", "optimise", "optimise_for_others"]


def optimise(graph: Graph, *, for_cores: bool = True, in_16_bits: bool = False, folded: bool = False) -> Graph:
    """Return the graph in the operators of ``LOWERED``, with the same inputs and outputs.

    Args:
        graph: as it was loaded.
        for_cores: whether nodes may be made that only the processor's kernels know.
        in_16_bits: whether layers are to be computed in bfloat16 or float16.
        folded: whether what is left of constants alone is to be computed by kernels.

    Raises:
        PowerlabError: the graph needs what the engine cannot do, naming the node, or more memory than there is.
    """
    left_out: tuple[Callable[[Graph], Graph], ...] = (fold_constants,) if folded else ()
    left_out += (*(() if for_cores else _FOR_CORES), *(() if for_cores and not in_16_bits else _NOT_IN_16_BITS))
    return _rewritten(graph, [rewrite for rewrite in PASSES if rewrite not in left_out])


def optimise_for_others(graph: Graph) -> Graph:
    """Return the graph as other engines get it: each node stands for an operator of theirs.

    Raises:
        PowerlabError: as :func:`optimise` does.
    """
    return _rewritten(graph, [rewrite for rewrite in PASSES if rewrite not in _FOR_OWN_KERNELS])


def _rewritten(graph: Graph, passes: Iterable[Callable[[Graph], Graph]]) -> Graph:
    name = graph.name
    try:
        for rewrite in passes:
            graph = rewrite(graph)
    except MemoryError:
        raise PowerlabError(f"the model {quoted(name)} does not fit into memory; give a smaller model.") from None
    return graph
