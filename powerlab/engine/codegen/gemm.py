"""Fully connected layers: few images are a matter of reading the weights, many a convolution of one row."""

from __future__ import annotations

from msgspec.structs import asdict, replace

from powerlab.engine.codegen.attributes import clamp_fields
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.direct_kernel import Direct, emit_direct
from powerlab.engine.codegen.convolutions.partition import Work, partition
from powerlab.engine.codegen.gemv import GEMV_IMAGES, emit_gemv, images_as_pixels, unit_blocks
from powerlab.engine.codegen.narrow.formats import FORMATS, Format
from powerlab.engine.codegen.pack import fill_channels
from powerlab.engine.codegen.pairs.kernel import Pairs, emit_pairs, pair_tier
from powerlab.engine.codegen.row_sums import take_sum
from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import divide_up
from powerlab.engine.program.program import Floats
from powerlab.engine.runtime.memory import value_bytes

_GEMM_LANES = 128
"""Features that count as one input block."""

NARROW_IMAGES = 8
"""Beyond so many, multiplications take longer than reading weights: floats are multiplied without being made first."""


_POINT = dict.fromkeys(("kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w"), 1)
"""The window of a convolution that a linear layer is."""


def lower_gemm(builder: Builder, node: Node) -> None:
    """Lower a FusedGemm."""
    images, form = builder.graph.shape(node.outputs[0])[0], FORMATS.get(builder.tier.precision)
    if form is not None and images <= NARROW_IMAGES:
        _emit_narrow(builder, node, form)
    elif images <= GEMV_IMAGES:
        _emit_gemv(builder, node)
    elif _is_of_pairs(builder, node):
        _emit_pairs(builder, node)
    else:
        _emit_convolution(builder, node)


def _emit_gemv(builder: Builder, node: Node) -> None:
    weights, bias = builder.kept(node.inputs[1]), builder.optional_constant(node.input(2))
    kernels = derived(weights, (*weights.shape, 1, 1), _kernels)
    x, out = builder.planar(node.inputs[0]), builder.new_planar(node.outputs[0])
    emit_gemv(builder, node, out, x, kernels, bias=bias, **clamp_fields(node))


def _emit_narrow(builder: Builder, node: Node, form: Format) -> None:
    """The same with weights in fewer bits."""
    tier, weights = builder.tier, builder.kept(node.inputs[1])
    outputs, features = weights.shape
    x, out = builder.planar(node.inputs[0]), builder.new_planar(node.outputs[0])
    out_layout = images_as_pixels(out.layout, outputs, tier.vector_width)
    together = unit_blocks(form.sums * min(out_layout.w, GEMV_IMAGES), tier)
    builder.emit(
        f"gemv_{form.name}",
        node,
        out.seen_as(out_layout),
        x.seen_as(images_as_pixels(x.layout, features, features)),
        weights=form.packed(weights, tier.vector_width, together),
        bias=fill_channels(builder.optional_constant(node.input(2)), outputs, out_layout.blocks, tier.vector_width),
        unit_blocks=together,
        **clamp_fields(node),
    )


def _emit_convolution(builder: Builder, node: Node) -> None:
    """Images are the pixels of one row, features its channels."""
    weights = builder.kept(node.inputs[1])
    outputs, features = weights.shape
    x, added = builder.planar(node.inputs[0]), take_sum(builder, node)
    out = builder.new_planar((added.node if added else node).outputs[0])
    lanes = min(_GEMM_LANES, features)
    each = replace(out.layout, n=x.layout.n, image=outputs) if added else out.layout
    rows = images_as_pixels(each, outputs, builder.tier.vector_width)
    conv = Direct(
        x=x.seen_as(images_as_pixels(x.layout, features, lanes)),
        out=out.seen_as(rows),
        residual=builder.planar(added.summand).seen_as(rows) if added else None,
        weights=derived(weights, (outputs, features, 1, 1), _kernels),
        bias=builder.optional_constant(node.input(2)),
        groups=1,
        lanes=lanes,
        fields={**_POINT, **clamp_fields(added.node if added else node)},
    )
    work = Work(
        groups=1,
        in_blocks=divide_up(features, lanes),
        lanes=lanes,
        taps=1,
        out_blocks=conv.out.layout.blocks,
        rows=1,
        columns=conv.out.layout.w,
        x_bytes=4 * features * conv.out.layout.w,
    )
    caches = builder.machine.caches
    # Where every thread may keep all weights, threads share rows, as those that read the result do.
    split = 1 if 2 * value_bytes(weights) <= caches.l2_bytes else None
    cut = partition(work, builder.tier, builder.threads, caches, split)
    emit_direct(builder, node, conv, Choice(algorithm="direct", **asdict(cut)))


def _is_of_pairs(builder: Builder, node: Node) -> bool:
    """Tell whether rows and weights are multiplied in 16-bit floats."""
    images = builder.graph.shape(node.outputs[0])[0]
    return builder.tier.computes_in_16_bits() and images > max(NARROW_IMAGES, GEMV_IMAGES)


def _emit_pairs(builder: Builder, node: Node) -> None:
    """The same in 16-bit floats: one input block holds all features."""
    weights, tier = builder.kept(node.inputs[1]), builder.tier
    outputs, features = weights.shape
    x, added = builder.pair_rows(node.inputs[0]), take_sum(builder, node)
    readers = [] if added else _rounded_by(builder, node.outputs[0])
    if readers:
        out, rows = builder.new_pair_rows(node.outputs[0], readers), None
    else:
        whole = builder.new_planar((added.node if added else node).outputs[0])
        each = replace(whole.layout, n=x.layout.w, image=outputs) if added else whole.layout
        rows = images_as_pixels(each, outputs, tier.vector_width)
        out = whole.seen_as(rows)
    conv = Pairs(
        x=x,
        out=out,
        floats=rows is not None,
        residual=builder.planar(added.summand).seen_as(rows) if added and rows else None,
        narrow_residual=False,
        weights=derived(weights, (outputs, features, 1, 1), _kernels),
        bias=builder.optional_constant(node.input(2)),
        groups=1,
        words=x.layout.pixel,
        fields={**_POINT, **clamp_fields(added.node if added else node)},
    )
    work = Work(
        groups=1,
        in_blocks=1,
        lanes=x.layout.pixel,
        taps=1,
        out_blocks=divide_up(outputs, tier.vector_width),
        rows=1,
        columns=conv.out.layout.w,
        x_bytes=4 * x.layout.size,
    )
    cut = partition(work, pair_tier(tier), builder.threads, builder.machine.caches)
    emit_pairs(builder, node, conv, Choice(algorithm=tier.precision, **{**asdict(cut), "chunk_blocks": 0}))


def _rounded_by(builder: Builder, name: str) -> list[str]:
    """Return under what names linear layers alone read a result, maybe through views, which then need no steps.

    Such layers round it anyway. Empty where anything else reads it.
    """
    found, views, left = list[str](), list[str](), [name]
    outputs = builder.graph.output_names()
    while left:
        seen = left.pop()
        if seen in outputs:
            return []
        for reader in builder.readers(seen):
            if reader.op_type == "Reshape":
                left.append(reader.outputs[0])
                views.append(reader.outputs[0])
            elif _rounds(builder, reader, seen) and builder.graph.shape(seen) == builder.graph.shape(name):
                found.append(seen)
            else:
                return []
    if found:
        builder.written.update(views)
    return found


def _rounds(builder: Builder, node: Node, name: str) -> bool:
    return node.op_type == "FusedGemm" and node.inputs.index(name) == 0 and _is_of_pairs(builder, node)


def _kernels(weights: Floats) -> Floats:
    """Return the weights of outputs by features as kernels of one tap."""
    return weights.reshape(*weights.shape, 1, 1)
