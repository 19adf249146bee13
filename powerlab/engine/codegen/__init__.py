"""Lowering: an optimised graph becomes a program of kernel calls with every layout decided.

One function an operator, listed in :data:`LOWERINGS`; a new operator is a function and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attention import Attention, find_attentions
from powerlab.engine.codegen.builder import Builder, Chosen
from powerlab.engine.codegen.concat_in_place import find_places, with_common_halos
from powerlab.engine.codegen.convolutions.algorithms.table import ALGORITHMS
from powerlab.engine.codegen.convolutions.chain import chain_halo, lower_chain
from powerlab.engine.codegen.convolutions.choosing import Chooser, by_cost, cheapest
from powerlab.engine.codegen.convolutions.conv_shape import conv_shapes
from powerlab.engine.codegen.convolutions.lowering import lower_conv
from powerlab.engine.codegen.convolutions.phases import transposed_halo
from powerlab.engine.codegen.convolutions.preactivation import find_preactivations
from powerlab.engine.codegen.convolutions.transposed import lower_conv_transpose
from powerlab.engine.codegen.convolutions.volume import lower_conv_volume
from powerlab.engine.codegen.data_movement import lower_concat, lower_reshape, lower_slice
from powerlab.engine.codegen.elementwise import lower_add, lower_clamp, lower_multiply, lower_scale_shift
from powerlab.engine.codegen.gemm import lower_gemm
from powerlab.engine.codegen.general.copies import lower_expand, lower_pad, lower_tile
from powerlab.engine.codegen.general.functions import lower_function
from powerlab.engine.codegen.general.indexed import (
    lower_gather,
    lower_gather_elements,
    lower_gather_nd,
    lower_scatter_elements,
    lower_scatter_nd,
)
from powerlab.engine.codegen.general.nodes import lower_elementwise, lower_general
from powerlab.engine.codegen.general.norms import lower_group_norm, lower_norm
from powerlab.engine.codegen.general.reductions import lower_arg_most, lower_reduce, lower_running_sum, lower_top
from powerlab.engine.codegen.general.regions import lower_roi_align
from powerlab.engine.codegen.image_loop import batch_size, looped_nodes, threads_apart
from powerlab.engine.codegen.image_pads import lower_image_pad, lower_quantized_pad
from powerlab.engine.codegen.image_steps import by_image
from powerlab.engine.codegen.lrn_softmax import lower_lrn
from powerlab.engine.codegen.pool import lower_average_pool, lower_global_average_pool, lower_max_pool, lower_pool
from powerlab.engine.codegen.product import fits, lower_attention, lower_product
from powerlab.engine.codegen.quantized.convolution import byte_halo, lower_quantized_conv
from powerlab.engine.codegen.quantized.layers import (
    lower_dequantize,
    lower_quantize,
    lower_quantized_add,
    lower_quantized_concat,
    lower_quantized_lookup,
    lower_quantized_pool,
    lower_quantized_resize,
    lower_quantized_scale,
    lower_quantized_slice,
    lower_quantized_view,
)
from powerlab.engine.codegen.quantized.layouts import word_tensors
from powerlab.engine.codegen.quantized.pooled import find_pooled, lower_pooled
from powerlab.engine.codegen.quantized.volume import byte_volume_halo, lower_quantized_volume_conv
from powerlab.engine.codegen.recurrent.cells import lower_lstm
from powerlab.engine.codegen.recurrent.general import lower_recurrence
from powerlab.engine.codegen.resize import lower_interpolate, lower_resize
from powerlab.engine.codegen.rows import (
    lower_channel_norm,
    lower_hardmax,
    lower_log_softmax,
    lower_row_norm,
    lower_softmax,
)
from powerlab.engine.codegen.training.choosing import moving_choice, moving_shape
from powerlab.engine.codegen.training.convolutions import (
    lower_computed_conv,
    lower_computed_conv_transpose,
    lower_conv_weight_gradient,
)
from powerlab.engine.codegen.training.layers import (
    lower_average_pool_gradient,
    lower_batch_norm,
    lower_batch_norm_gradient,
    lower_channel_sums,
    lower_clamp_gradient,
    lower_global_average_pool_gradient,
    lower_lrn_gradient,
    lower_max_pool_gradient,
)
from powerlab.engine.codegen.training.recurrent import (
    lower_gru_cell,
    lower_gru_cell_gradient,
    lower_lstm_cell,
    lower_lstm_cell_gradient,
)
from powerlab.engine.codegen.training.updates import lower_adam_update, lower_sgd_update
from powerlab.engine.codegen.transpose import lower_transpose
from powerlab.engine.codegen.weights import Made
from powerlab.engine.ir.graph import Graph, Node, quoted
from powerlab.engine.ops.functions import KERNELS
from powerlab.engine.program.layout import NO_HALO, Halo
from powerlab.engine.program.program import Program
from powerlab.engine.runtime.memory import check_memory, weight_bytes
from powerlab.engine.target.machine import Machine, this_machine
from powerlab.engine.target.tiers import Tier

LOWERINGS: Mapping[str, Callable[[Builder, Node], None]] = {
    **dict.fromkeys(KERNELS, lower_function),
    "AdamUpdate": lower_adam_update,
    "Add": lower_add,
    "ArgMost": lower_arg_most,
    "AveragePool": lower_average_pool,
    "AveragePoolGradient": lower_average_pool_gradient,
    "BatchNorm": lower_batch_norm,
    "BatchNormGradient": lower_batch_norm_gradient,
    "Chain": lower_chain,
    "ChannelNorm": lower_channel_norm,
    "ChannelSums": lower_channel_sums,
    "Clamp": lower_clamp,
    "ClampGradient": lower_clamp_gradient,
    "ComputedConv": lower_computed_conv,
    "ComputedConvTranspose": lower_computed_conv_transpose,
    "Concat": lower_concat,
    "ConvWeightGradient": lower_conv_weight_gradient,
    "CumSum": lower_running_sum,
    "Elementwise": lower_elementwise,
    "Dequantize": lower_dequantize,
    "Expand": lower_expand,
    "FusedConv": lower_conv,
    "FusedConvTranspose": lower_conv_transpose,
    "FusedGemm": lower_gemm,
    "FusedLstm": lower_lstm,
    "FusedVolumeConv": lower_conv_volume,
    "General": lower_general,
    "Gather": lower_gather,
    "GatherElements": lower_gather_elements,
    "GatherND": lower_gather_nd,
    "GlobalAveragePool": lower_global_average_pool,
    "GlobalAveragePoolGradient": lower_global_average_pool_gradient,
    "GroupNorm": lower_group_norm,
    "GruCell": lower_gru_cell,
    "GruCellGradient": lower_gru_cell_gradient,
    "ImagePad": lower_image_pad,
    "Interpolate": lower_interpolate,
    "Hardmax": lower_hardmax,
    "LRN": lower_lrn,
    "LRNGradient": lower_lrn_gradient,
    "LogSoftmax": lower_log_softmax,
    "LstmCell": lower_lstm_cell,
    "LstmCellGradient": lower_lstm_cell_gradient,
    "MaxPool": lower_max_pool,
    "MaxPoolGradient": lower_max_pool_gradient,
    "Multiply": lower_multiply,
    "Norm": lower_norm,
    "Pad": lower_pad,
    "Pool": lower_pool,
    "QuantAdd": lower_quantized_add,
    "QuantConcat": lower_quantized_concat,
    "QuantConv": lower_quantized_conv,
    "QuantLookup": lower_quantized_lookup,
    "QuantPad": lower_quantized_pad,
    "QuantPool": lower_quantized_pool,
    "QuantResize": lower_quantized_resize,
    "QuantScale": lower_quantized_scale,
    "QuantSlice": lower_quantized_slice,
    "QuantView": lower_quantized_view,
    "QuantVolumeConv": lower_quantized_volume_conv,
    "Quantize": lower_quantize,
    "Recurrence": lower_recurrence,
    "Product": lower_product,
    "Reduce": lower_reduce,
    "Reshape": lower_reshape,
    "Resize": lower_resize,
    "RoiAlign": lower_roi_align,
    "RowNorm": lower_row_norm,
    "ScaleShift": lower_scale_shift,
    "ScatterElements": lower_scatter_elements,
    "ScatterND": lower_scatter_nd,
    "SgdUpdate": lower_sgd_update,
    "Slice": lower_slice,
    "Softmax": lower_softmax,
    "Tile": lower_tile,
    "TopK": lower_top,
    "Transpose": lower_transpose,
}

_HALOS: Mapping[str, Callable[[Graph, Node], Halo]] = {
    "Chain": chain_halo,
    "ComputedConvTranspose": transposed_halo,
    "FusedConvTranspose": transposed_halo,
    "QuantConv": byte_halo,
    "QuantVolumeConv": byte_volume_halo,
}
"""Operator → the zeros that it needs around what it reads, where no choice decides that."""


def chosen_algorithms(graph: Graph, tier: Tier, threads: int, chooser: Chooser | None = None) -> Mapping[str, str]:
    """Return the algorithm of each convolution of an optimised graph by the name of its result; see :func:`lower`."""
    choose = chooser or by_cost(this_machine(tier, threads))
    return {name: choose(shape).algorithm for name, shape in conv_shapes(graph).items()}


def lower(
    graph: Graph,
    tier: Tier,
    threads: int,
    chooser: Chooser | None = None,
    algorithms: Mapping[str, str] = MappingProxyType({}),
    *,
    made: Made | None = None,
    machine: Machine | None = None,
) -> Program:
    """Turn an optimised graph into a program.

    Args:
        graph: what :func:`powerlab.engine.passes.optimise` returned.
        tier: the kernels to use; it decides the width of a channel block.
        threads: threads the program will run on; they decide how convolutions are cut.
        chooser: says how each convolution is computed; None: the fastest by the cost model.
        algorithms: by the name of its result, the algorithm that a convolution must have, whatever the chooser says.
        made: weights made for other programs; None: all are made now.
        machine: what to choose for, with the same tier and threads; None: this one, which is looked at now.

    Raises:
        PowerlabError: an operator is not known here, or asks for more than its kernel can, a tensor is empty, or the
            weights are larger than the memory there is.
    """
    check_memory(weight_bytes(graph), f"the model {quoted(graph.name)}", "its weights")
    for name in (name for node in graph.nodes for name in (*node.inputs, *node.outputs) if name):
        if 0 in graph.shape(name):
            raise PowerlabError(
                f"the tensor {name!r} has shape {list(graph.shape(name))}: it is empty, so there is nothing to compute."
            )
    machine, apart = machine or this_machine(tier, threads), threads_apart(graph, threads)
    choose = chooser or by_cost(machine)
    program, complete = _lowered(graph, machine, choose, algorithms, apart=apart, made=made)
    if not complete:  # some of the steps mix images after all
        program, _ = _lowered(graph, machine, choose, algorithms, apart=1, made=made)
    return program


def _lowered(
    graph: Graph,
    machine: Machine,
    choose: Chooser,
    algorithms: Mapping[str, str],
    *,
    apart: int,
    made: Made | None,
) -> tuple[Program, bool]:
    """Return a program, and whether as many of its steps as were meant to are run image by image by threads apart."""
    of_image = machine if apart == 1 else replace(machine, threads=1)
    looped = looped_nodes(graph)
    by_images = {node.outputs[0] for node in graph.nodes[:looped]}
    halos: dict[str, Halo] = {}
    chosen: dict[str, Chosen] = {}
    shapes, preactivations = conv_shapes(graph), find_preactivations(graph)
    for node in graph.nodes:
        if node.op_type not in LOWERINGS:
            raise PowerlabError(f"{node} cannot be run: the built-in engine has no kernel for {node.op_type!r}.")
        if node.op_type == "FusedConv":
            shape, source = shapes[node.outputs[0]], node.inputs[0]
            choice = choose(shape)
            wanted = algorithms.get(node.outputs[0], choice.algorithm)
            runs_on = of_image if node.outputs[0] in by_images else machine
            if wanted != choice.algorithm or runs_on != machine:
                choice = cheapest(ALGORITHMS[wanted], shape, runs_on)
            chosen[node.outputs[0]] = shape, choice
            halo = ALGORITHMS[choice.algorithm].halo(shape)
            halos[source] = halos.get(source, NO_HALO).union(halo)
        moving = moving_shape(graph, node)
        if moving is not None:
            source, choice = node.inputs[0], moving_choice(node, moving, machine)
            chosen[node.outputs[0]] = moving, choice
            halos[source] = halos.get(source, NO_HALO).union(ALGORITHMS[choice.algorithm].halo(moving))
        if node.op_type in _HALOS:
            source = node.inputs[0]
            halos[source] = halos.get(source, NO_HALO).union(_HALOS[node.op_type](graph, node))
    places = find_places(graph, machine.tier.vector_width)
    builder = Builder(
        graph,
        machine,
        halos=with_common_halos(halos, places),
        places=places,
        chosen=chosen,
        preactivations=preactivations,
        words=word_tensors(graph),
        made=made,
    )
    attentions = {one.products[1].outputs[0]: one for one in find_attentions(graph, partial(fits, graph, machine.tier))}
    absorbed = {before.outputs[0] for before in preactivations.values()}
    absorbed |= {node.outputs[0] for one in attentions.values() for node in one.before}
    pooled = find_pooled(graph, lambda node: of_image if node.outputs[0] in by_images else machine)
    absorbed |= {conv.outputs[0] for conv in pooled.values()}
    looped_steps = 0
    for index, node in enumerate(graph.nodes):
        builder.machine = of_image if index < looped else machine
        name = node.outputs[0]
        if name in attentions:
            _lower_attention(builder, attentions[name])
        elif name in pooled:
            lower_pooled(builder, pooled[name], node)
        elif name not in absorbed and name not in builder.written:
            LOWERINGS[node.op_type](builder, node)
        if index < looped:
            looped_steps = builder.steps
    program = by_image(builder.finish(), looped_steps, batch_size(graph), apart)
    return program, apart == 1 or program.looped == looped_steps


def _lower_attention(builder: Builder, attention: Attention) -> None:
    """Lower an attention as one, or node by node where its operands do not go together."""
    if not lower_attention(builder, attention):
        for node in (*attention.before, attention.products[1]):
            LOWERINGS[node.op_type](builder, node)
