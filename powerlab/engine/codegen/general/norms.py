"""Normalisation of tensors by their own numbers."""

from __future__ import annotations

import math

from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import clamp_fields, integers, number
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.pack import fill_channels
from powerlab.engine.ir.graph import Node
from powerlab.engine.ops.normalisation import of_channels
from powerlab.engine.program.operand import MOST_AXES, Operand


def lower_group_norm(builder: Builder, node: Node) -> None:
    """Lower a GroupNorm; scale and shift have a number for each channel, or for each group."""
    groups = int(number(node, "groups"))
    if builder.lies_in_blocks(node.inputs[0]) and (family := _in_blocks(builder, node, groups)):
        _norm_blocks(builder, node, family, groups)
        return
    x, scale, shift = (builder.general(name) for name in node.inputs)
    out = builder.new_general(node.outputs[0])
    channels = x.sizes[1] // groups
    images = [_in_groups(operand, groups, channels) for operand in (out, x)]
    of_channels = [_of_channels(operand, groups, channels) for operand in (scale, shift)]
    fields = {"offset": number(node, "epsilon"), **clamp_fields(node)}
    builder.emit_general("group_norm_strided_f32", node, [*images, *of_channels], **fields)


def _in_blocks(builder: Builder, node: Node, groups: int) -> str:
    """Return the kernel in blocks, where a group is a channel or fills blocks; empty: there is none."""
    if not all(name in builder.graph.constants for name in node.inputs[1:]):
        return ""
    channels = builder.graph.shape(node.inputs[0])[1]
    if groups == channels:
        return "instance_norm"
    return "group_norm" if channels // groups % builder.tier.vector_width == 0 else ""


def _norm_blocks(builder: Builder, node: Node, family: str, groups: int) -> None:
    x, out, width = builder.blocked(node.inputs[0]), builder.new_blocked(node.outputs[0]), builder.tier.vector_width
    scale, shift = (
        fill_channels(of_channels(values, x.layout.c), x.layout.c, x.layout.blocks, width)
        for values in map(builder.constant, node.inputs[1:])
    )
    fields = {"groups": groups, "alpha": number(node, "epsilon"), **clamp_fields(node)}
    builder.emit(family, node, out, x, weights=scale, bias=shift, **fields)


def _in_groups(operand: Operand, groups: int, channels: int) -> Operand:
    """Return an image as images, groups, channels and pixels; all but images follow on each other."""
    pixels = math.prod(operand.sizes[2:])
    return replace(
        operand,
        sizes=(operand.sizes[0], groups, channels, pixels),
        strides=(operand.strides[0], channels * pixels, pixels, 1),
    )


def _of_channels(operand: Operand, groups: int, channels: int) -> Operand:
    sizes = (groups, channels if operand.sizes[0] == groups * channels else 1)
    return operand.split(0, sizes).broadcast((groups, channels))


def lower_norm(builder: Builder, node: Node) -> None:
    """Lower a Norm: the axes that it goes over come last.

    Raises:
        PowerlabError: the tensor has more axes than a kernel takes.
    """
    x, out = builder.general(node.inputs[0]), builder.new_general(node.outputs[0])
    if len(x.sizes) > MOST_AXES:
        raise PowerlabError(f"{node} works on {len(x.sizes)} axes, and the built-in engine goes up to {MOST_AXES}.")
    over = integers(node, "axes")
    kept = tuple(axis for axis in range(len(x.sizes)) if axis not in over)
    operands = [operand.permuted((*kept, *over)) for operand in (out, x)]
    builder.emit_general("norm_strided_f32", node, operands, [len(kept), int(number(node, "p")), 0, 0])
