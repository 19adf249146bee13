"""Lowering for GPUs: one function an operator, listed in :data:`LOWERINGS`; what is not listed is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attention import find_attentions
from powerlab.engine.gpu.activations import FUNCTIONS
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.choice.method import Chooser
from powerlab.engine.gpu.choice.rule import by_rule
from powerlab.engine.gpu.lowering.attention import fits, lower_attention
from powerlab.engine.gpu.lowering.convolution import lower_conv
from powerlab.engine.gpu.lowering.dense import lower_gemm
from powerlab.engine.gpu.lowering.layer_sums import find_layer_sums, lower_layer_sum
from powerlab.engine.gpu.lowering.lrn import lower_lrn
from powerlab.engine.gpu.lowering.moving import (
    lower_concat,
    lower_expand,
    lower_gather,
    lower_gather_elements,
    lower_pad,
    lower_reshape,
    lower_scatter_nd,
    lower_slice,
    lower_tile,
    lower_transpose,
)
from powerlab.engine.gpu.lowering.pointwise import (
    lower_add,
    lower_clamp,
    lower_elementwise,
    lower_function,
    lower_multiply,
    lower_scale_shift,
)
from powerlab.engine.gpu.lowering.pools import lower_average_pool, lower_global_average_pool, lower_max_pool, lower_pool
from powerlab.engine.gpu.lowering.product import lower_product
from powerlab.engine.gpu.lowering.quantized.convolution import lower_quantized_conv, lower_quantized_volume_conv
from powerlab.engine.gpu.lowering.quantized.images import (
    lower_dequantize,
    lower_quantize,
    lower_quantized_add,
    lower_quantized_concat,
    lower_quantized_pool,
    lower_quantized_resize,
    lower_quantized_scale,
    lower_quantized_view,
)
from powerlab.engine.gpu.lowering.recurrent.lowering import lower_recurrent
from powerlab.engine.gpu.lowering.reductions import lower_arg_most, lower_cumulative_sum, lower_reduce
from powerlab.engine.gpu.lowering.resizes import lower_interpolate, lower_resize
from powerlab.engine.gpu.lowering.rows import (
    lower_channel_norm,
    lower_group_norm,
    lower_log_softmax,
    lower_row_norm,
    lower_softmax,
)
from powerlab.engine.gpu.lowering.training import TRAINING
from powerlab.engine.gpu.lowering.transposed import lower_conv_transpose
from powerlab.engine.gpu.lowering.volume import lower_conv_volume
from powerlab.engine.gpu.picking import place_views, reads_places
from powerlab.engine.gpu.program import GpuProgram
from powerlab.engine.gpu.target import Target
from powerlab.engine.gpu.whole_numbers import WholeNumbers, bounds_to_try
from powerlab.engine.ir.graph import Graph, Node

LOWERINGS: Mapping[str, Callable[[Builder, Node], None]] = {
    **dict.fromkeys((name for name in FUNCTIONS if name), lower_function),
    **TRAINING,
    "Add": lower_add,
    "ArgMost": lower_arg_most,
    "AveragePool": lower_average_pool,
    "ChannelNorm": lower_channel_norm,
    "Clamp": lower_clamp,
    "Concat": lower_concat,
    "CumSum": lower_cumulative_sum,
    "Elementwise": lower_elementwise,
    "Dequantize": lower_dequantize,
    "Expand": lower_expand,
    "FusedConv": lower_conv,
    "FusedConvTranspose": lower_conv_transpose,
    "FusedGemm": lower_gemm,
    "FusedLstm": lower_recurrent,
    "FusedVolumeConv": lower_conv_volume,
    "Gather": lower_gather,
    "GatherElements": lower_gather_elements,
    "GlobalAveragePool": lower_global_average_pool,
    "GroupNorm": lower_group_norm,
    "Interpolate": lower_interpolate,
    "LRN": lower_lrn,
    "LogSoftmax": lower_log_softmax,
    "MaxPool": lower_max_pool,
    "Multiply": lower_multiply,
    "Pad": lower_pad,
    "Pool": lower_pool,
    "Product": lower_product,
    "QuantAdd": lower_quantized_add,
    "QuantConcat": lower_quantized_concat,
    "QuantConv": lower_quantized_conv,
    "QuantPool": lower_quantized_pool,
    "QuantResize": lower_quantized_resize,
    "QuantScale": lower_quantized_scale,
    "QuantView": lower_quantized_view,
    "QuantVolumeConv": lower_quantized_volume_conv,
    "Quantize": lower_quantize,
    "Recurrence": lower_recurrent,
    "Reduce": lower_reduce,
    "Reshape": lower_reshape,
    "Resize": lower_resize,
    "RowNorm": lower_row_norm,
    "ScaleShift": lower_scale_shift,
    "ScatterND": lower_scatter_nd,
    "Slice": lower_slice,
    "Softmax": lower_softmax,
    "Tile": lower_tile,
    "Transpose": lower_transpose,
}
"""Operator of an optimised graph, without chains → what emits its dispatches."""


def lower(graph: Graph, target: Target, *, half: bool = False, choose: Chooser | None = None) -> GpuProgram:
    """Turn an optimised graph into dispatches.

    Args:
        graph: what :func:`powerlab.engine.passes.optimise` returned, without chains.
        target: what it is lowered for.
        half: whether numbers between kernels and weights are stored in 16 bits.
        choose: says how each convolution is computed; None: the rule does.

    Raises:
        PowerlabError: an operator, a type or a size is not supported on a GPU, naming the node.
    """
    whole = check_lowered(graph, half=half)
    if odd := [info.name for info in graph.outputs if info.dtype.kind != "f" and whole.range_of(info.name) is None]:
        raise PowerlabError(
            f"the output {odd[0]!r} is no float and no small whole number, and a GPU gives out no other yet; use the "
            "device cpu."
        )
    builder = Builder(graph=graph, target=target, half=half, choose=choose or by_rule(target), bounded=whole.bounded)
    lower_nodes(builder)
    return builder.finish()


def check_lowered(graph: Graph, small: Collection[str] = (), *, half: bool = False) -> WholeNumbers:
    """Refuse what cannot be lowered, and return the whole numbers that are computed as floats.

    Args:
        graph: what :func:`powerlab.engine.passes.optimise` returned, without chains.
        small: inputs of integers that floats hold exactly.
        half: whether numbers between kernels are stored in 16 bits.

    Raises:
        PowerlabError: an operator, a type or a size is not supported on a GPU, naming the node.
    """
    for node in graph.nodes:
        if node.op_type not in LOWERINGS:
            raise PowerlabError(f"{node} is not supported on a GPU yet; use the device cpu for this model.")
        if half and node.op_type in TRAINING:
            raise PowerlabError(f"{node} is not supported on a GPU in 16 bits yet; ask for fp32, or use the cpu.")
        for name in filter(None, (*node.inputs, *node.outputs)):
            if 0 in (shape := graph.tensors[name].shape):
                raise PowerlabError(f"the tensor {name!r} has shape {list(shape)}: it is empty.")
    first: tuple[Node, str] | None = None
    for most in bounds_to_try(graph, half=half):
        whole = WholeNumbers(graph, half=half, most=most)
        unknown = _unknown(graph, whole, small)
        if unknown is None:
            return whole
        first = first or unknown
    assert first is not None  # noqa: S101 - one bound is tried at least
    node, name = first
    raise PowerlabError(
        f"{node} has the {graph.tensors[name].dtype} tensor {name!r}, and on a GPU the engine computes with floats and "
        "small whole numbers alone yet; use the device cpu for this model."
    )


def _unknown(graph: Graph, whole: WholeNumbers, small: Collection[str]) -> tuple[Node, str] | None:
    """Return a tensor with which a GPU cannot compute, and the node that would have it to; None without any."""
    constants, exact, places = graph.kept_constants, set(small), place_views(graph)
    for node in graph.nodes:
        if node.op_type == "Reshape" and node.inputs[0] in exact:
            exact.update(node.outputs)
        for name in filter(None, (*node.inputs, *node.outputs)):
            known = name in constants or name in exact or reads_places(graph, places, node, name)
            if not known and not _is_known(graph, node, name) and not whole.reads(node, name):
                return node, name
    return None


def lower_nodes(builder: Builder) -> None:
    """Emit the dispatches of all nodes of a builder's graph."""
    graph = builder.graph
    attentions = {one.products[1].outputs[0]: one for one in find_attentions(graph, partial(fits, graph))}
    covered = {node.outputs[0] for one in attentions.values() for node in one.covered}
    sums = {name: one for one in find_layer_sums(graph) if (name := one.add.outputs[0]) not in covered}
    covered |= {node.outputs[0] for one in sums.values() for node in one.covered}
    for node in graph.nodes:
        name = node.outputs[0]
        if name in attentions:
            if lower_attention(builder, attentions[name]):
                continue
            for one in attentions[name].before:
                LOWERINGS[one.op_type](builder, one)
            covered -= {one.outputs[0] for one in attentions[name].covered}
        if name in sums:
            lower_layer_sum(builder, sums[name])
        elif name not in covered and not builder.is_place(name):
            LOWERINGS[node.op_type](builder, node)


def _is_known(graph: Graph, node: Node, name: str) -> bool:
    """Tell whether a GPU has a tensor's type whatever is in it: floats, and bytes."""
    in_bytes = node.op_type.startswith("Quant") or node.op_type == "Dequantize"
    return {"f": True, "u": in_bytes}.get(graph.tensors[name].dtype.kind, False)
