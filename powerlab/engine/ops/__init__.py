"""What the engine knows of each ONNX operator. A new one is a rule in a family's file and one line in the table.

The rules follow https://onnx.ai/onnx/operators from opset 7 on; where opsets differ only in attribute or input, a rule
takes both forms.
"""

from __future__ import annotations

from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Node
from powerlab.engine.ops import (
    activation,
    attention,
    casting,
    convolution,
    counting,
    einsum,
    elementwise,
    functions,
    gathering,
    matrix,
    moving,
    normalisation,
    pooling,
    quantization,
    quantized,
    recurrent,
    reducing,
    resizing,
    rotary,
    row_norms,
    sampling,
    selecting,
    spectra,
    unfolding,
    views,
)
from powerlab.engine.ops.base import Operator
from powerlab.engine.ops.control import CONTROL
from powerlab.engine.ops.gradients import GRADIENTS
from powerlab.engine.ops.sequences import SEQUENCES
from powerlab.engine.ops.training import TRAINING
from powerlab.engine.ops.view import NodeView

_RULES: dict[str, Operator] = {
    **elementwise.OPERATORS,
    **functions.OPERATORS,
    **counting.OPERATORS,
    **gathering.OPERATORS,
    **moving.OPERATORS,
    **quantization.OPERATORS,
    **quantized.OPERATORS,
    **reducing.OPERATORS,
    **selecting.OPERATORS,
    **spectra.OPERATORS,
    "Attention": attention.ATTENTION,
    "AffineGrid": sampling.AFFINE_GRID,
    "AveragePool": pooling.POOL,
    "BatchNormalization": normalisation.BATCH_NORMALISATION,
    "Cast": casting.CAST,
    "CastLike": casting.CAST,
    "Clip": activation.CLIP,
    "Col2Im": unfolding.COL2IM,
    "Conv": convolution.CONV,
    "ConvTranspose": convolution.CONV_TRANSPOSE,
    "DeformConv": unfolding.DEFORM_CONV,
    "Dropout": views.DROPOUT,
    "Einsum": einsum.EINSUM,
    "Flatten": views.FLATTEN,
    "Gemm": matrix.GEMM,
    "GRU": recurrent.RECURRENT,
    "GridSample": sampling.GRID_SAMPLE,
    "GroupNormalization": normalisation.GROUP_NORMALISATION,
    "GlobalAveragePool": pooling.GLOBAL_POOL,
    "GlobalLpPool": pooling.GLOBAL_LP_POOL,
    "GlobalMaxPool": pooling.GLOBAL_POOL,
    "Hardmax": activation.HARDMAX,
    "Identity": views.IDENTITY,
    "InstanceNormalization": normalisation.GROUP_NORMALISATION,
    "LRN": normalisation.LRN,
    "LSTM": recurrent.RECURRENT,
    "LpNormalization": normalisation.OVER_AXES,
    "LpPool": pooling.LP_POOL,
    "LayerNormalization": row_norms.LAYER_NORMALISATION,
    "LeakyRelu": activation.LEAKY_RELU,
    "LogSoftmax": activation.LOG_SOFTMAX,
    "MatMul": matrix.MATMUL,
    "MaxPool": pooling.MAX_POOL,
    "MaxUnpool": pooling.MAX_UNPOOL,
    "MeanVarianceNormalization": normalisation.OVER_AXES,
    "RNN": recurrent.RECURRENT,
    "RMSNormalization": row_norms.RMS_NORMALISATION,
    "RoiAlign": sampling.ROI_ALIGN,
    "Relu": activation.RELU,
    "Reshape": views.RESHAPE,
    "Resize": resizing.RESIZE,
    "RotaryEmbedding": rotary.ROTARY_EMBEDDING,
    "Softmax": activation.SOFTMAX,
    "Squeeze": views.SQUEEZE,
    "Transpose": views.TRANSPOSE,
    "Unsqueeze": views.UNSQUEEZE,
    "Upsample": resizing.RESIZE,
}

OPERATORS: dict[str, Operator] = {name: replace(rule, gradient=GRADIENTS.get(name)) for name, rule in _RULES.items()}
"""Operator name → rule."""

SUPPORTED = frozenset({*OPERATORS, *CONTROL, *SEQUENCES})
"""The operators that a model may have."""

__all__ = [
    "CONTROL",
    "OPERATORS",
    "SUPPORTED",
    "NodeView",
    "Operator",
    "decides_by_values",
    "operator",
    "training_operator",
]


def decides_by_values(node: Node) -> bool:
    """Say whether the values of a node's inputs, however large, decide the shape of what it makes."""
    return node.op_type in OPERATORS and OPERATORS[node.op_type].by_values


def operator(node: Node) -> Operator:
    """Return the rule of a node's operator.

    Raises:
        PowerlabError: the engine does not have the operator.
    """
    if node.op_type not in OPERATORS:
        raise PowerlabError(
            f"{node} uses an operator the engine does not have; `powerlab engine operators` lists those it has."
        )
    return OPERATORS[node.op_type]


def training_operator(node: Node) -> Operator:
    """Return the rule of an operator that a step of training may have: one of ONNX, or of its own.

    Raises:
        PowerlabError: the engine does not have the operator.
    """
    return TRAINING.get(node.op_type) or operator(node)
