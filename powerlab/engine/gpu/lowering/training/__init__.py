"""What a step of training holds beside what an inference does: one function an operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.lowering.training.batch_norm import lower_batch_norm, lower_batch_norm_gradient
from powerlab.engine.gpu.lowering.training.convolution import lower_computed_conv, lower_computed_conv_transpose
from powerlab.engine.gpu.lowering.training.layers import (
    lower_average_pool_gradient,
    lower_clamp_gradient,
    lower_global_average_pool_gradient,
    lower_lrn_gradient,
    lower_max_pool_gradient,
)
from powerlab.engine.gpu.lowering.training.scatter import lower_scatter_add
from powerlab.engine.gpu.lowering.training.sums import lower_channel_sums
from powerlab.engine.gpu.lowering.training.weight_gradient import lower_conv_weight_gradient
from powerlab.engine.ir.graph import Node

TRAINING: Mapping[str, Callable[[Builder, Node], None]] = {
    "AveragePoolGradient": lower_average_pool_gradient,
    "BatchNorm": lower_batch_norm,
    "BatchNormGradient": lower_batch_norm_gradient,
    "ChannelSums": lower_channel_sums,
    "ClampGradient": lower_clamp_gradient,
    "ComputedConv": lower_computed_conv,
    "ComputedConvTranspose": lower_computed_conv_transpose,
    "ConvWeightGradient": lower_conv_weight_gradient,
    "GlobalAveragePoolGradient": lower_global_average_pool_gradient,
    "LRNGradient": lower_lrn_gradient,
    "MaxPoolGradient": lower_max_pool_gradient,
    "ScatterElements": lower_scatter_add,
}
"""Operator of :mod:`powerlab.engine.ops.training`, or a convolution with computed weights → what emits it."""
