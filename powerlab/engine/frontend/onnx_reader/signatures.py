"""What ONNX's operators take: how many inputs at most, and which attributes, in any opset from 7 on.

Passes write attributes and inputs of their own into nodes; a file that could bring some along would pass for lowered.

Source: https://onnx.ai/onnx/operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Node, quoted

MANY = 2**31 - 1
"""Inputs of an operator that takes any number of them."""

SIGNATURES: Mapping[str, tuple[int, str]] = {
    "Abs": (1, ""),
    "Acos": (1, ""),
    "Acosh": (1, ""),
    "Add": (2, ""),
    "AffineGrid": (2, "align_corners"),
    "And": (2, ""),
    "ArgMax": (1, "axis keepdims select_last_index"),
    "ArgMin": (1, "axis keepdims select_last_index"),
    "Asin": (1, ""),
    "Asinh": (1, ""),
    "Atan": (1, ""),
    "Atanh": (1, ""),
    "Attention": (
        7,
        "is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode right_window_size scale "
        "softcap softmax_precision",
    ),
    "AveragePool": (1, "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides"),
    "BatchNormalization": (5, "epsilon momentum spatial training_mode"),
    "Bernoulli": (1, "dtype seed"),
    "BitCast": (1, "to"),
    "BitShift": (2, "direction"),
    "BitwiseAnd": (2, ""),
    "BitwiseNot": (1, ""),
    "BitwiseOr": (2, ""),
    "BitwiseXor": (2, ""),
    "BlackmanWindow": (1, "output_datatype periodic"),
    "Cast": (1, "round_mode saturate to"),
    "CastLike": (2, "round_mode saturate"),
    "CausalConvWithState": (4, "activation"),
    "Ceil": (1, ""),
    "Celu": (1, "alpha"),
    "CenterCropPad": (2, "axes"),
    "Clip": (3, "max min"),
    "Col2Im": (3, "dilations pads strides"),
    "Compress": (2, "axis"),
    "Concat": (MANY, "axis"),
    "ConcatFromSequence": (1, "axis new_axis"),
    "Constant": (0, "sparse_value value value_float value_floats value_int value_ints value_string value_strings"),
    "ConstantOfShape": (1, "value"),
    "Conv": (3, "auto_pad dilations group kernel_shape pads strides"),
    "ConvInteger": (4, "auto_pad dilations group kernel_shape pads strides"),
    "ConvTranspose": (3, "auto_pad dilations group kernel_shape output_padding output_shape pads strides"),
    "Cos": (1, ""),
    "Cosh": (1, ""),
    "CumProd": (2, "exclusive reverse"),
    "CumSum": (2, "exclusive reverse"),
    "DFT": (3, "axis inverse onesided"),
    "DeformConv": (5, "dilations group kernel_shape offset_group pads strides"),
    "DepthToSpace": (1, "blocksize mode"),
    "DequantizeLinear": (3, "axis block_size output_dtype"),
    "Det": (1, ""),
    "Div": (2, ""),
    "Dropout": (3, "ratio seed"),
    "DynamicQuantizeLinear": (1, ""),
    "Einsum": (MANY, "equation"),
    "Elu": (1, "alpha"),
    "Equal": (2, ""),
    "Erf": (1, ""),
    "Exp": (1, ""),
    "Expand": (2, ""),
    "EyeLike": (1, "dtype k"),
    "Flatten": (1, "axis"),
    "Floor": (1, ""),
    "GRU": (6, "activation_alpha activation_beta activations clip direction hidden_size layout linear_before_reset"),
    "Gather": (2, "axis"),
    "GatherElements": (2, "axis"),
    "GatherND": (2, "batch_dims"),
    "Gelu": (1, "approximate"),
    "Gemm": (3, "alpha beta transA transB"),
    "GlobalAveragePool": (1, ""),
    "GlobalLpPool": (1, "p"),
    "GlobalMaxPool": (1, ""),
    "Greater": (2, ""),
    "GreaterOrEqual": (2, ""),
    "GridSample": (2, "align_corners mode padding_mode"),
    "GroupNormalization": (3, "epsilon num_groups stash_type"),
    "HammingWindow": (1, "output_datatype periodic"),
    "HannWindow": (1, "output_datatype periodic"),
    "HardSigmoid": (1, "alpha beta"),
    "HardSwish": (1, ""),
    "Hardmax": (1, "axis"),
    "Identity": (1, ""),
    "If": (1, "else_branch then_branch"),
    "ImageDecoder": (1, "pixel_format"),
    "InstanceNormalization": (3, "epsilon"),
    "IsInf": (1, "detect_negative detect_positive"),
    "IsNaN": (1, ""),
    "LRN": (1, "alpha beta bias size"),
    "LSTM": (8, "activation_alpha activation_beta activations clip direction hidden_size input_forget layout"),
    "LayerNormalization": (3, "axis epsilon stash_type"),
    "LeakyRelu": (1, "alpha"),
    "Less": (2, ""),
    "LessOrEqual": (2, ""),
    "LinearAttention": (6, "chunk_size kv_num_heads q_num_heads scale update_rule"),
    "Log": (1, ""),
    "LogSoftmax": (1, "axis"),
    "Loop": (MANY, "body"),
    "LpNormalization": (1, "axis p"),
    "LpPool": (1, "auto_pad ceil_mode dilations kernel_shape p pads strides"),
    "MatMul": (2, ""),
    "MatMulInteger": (4, ""),
    "Max": (MANY, ""),
    "MaxPool": (1, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides"),
    "MaxRoiPool": (2, "pooled_shape spatial_scale"),
    "MaxUnpool": (3, "kernel_shape pads strides"),
    "Mean": (MANY, ""),
    "MeanVarianceNormalization": (1, "axes"),
    "MelWeightMatrix": (5, "output_datatype"),
    "Min": (MANY, ""),
    "Mish": (1, ""),
    "Mod": (2, "fmod"),
    "Mul": (2, ""),
    "Multinomial": (1, "dtype sample_size seed"),
    "Neg": (1, ""),
    "NegativeLogLikelihoodLoss": (3, "ignore_index reduction"),
    "NonMaxSuppression": (5, "center_point_box"),
    "NonZero": (1, ""),
    "Not": (1, ""),
    "OneHot": (3, "axis"),
    "Optional": (1, "type"),
    "OptionalGetElement": (1, ""),
    "OptionalHasElement": (1, ""),
    "Or": (2, ""),
    "PRelu": (2, ""),
    "Pad": (4, "mode pads value"),
    "Pow": (2, ""),
    "QLinearConv": (9, "auto_pad dilations group kernel_shape pads strides"),
    "QLinearMatMul": (8, ""),
    "QuantizeLinear": (3, "axis block_size output_dtype precision saturate"),
    "RMSNormalization": (2, "axis epsilon stash_type"),
    "RNN": (6, "activation_alpha activation_beta activations clip direction hidden_size layout"),
    "RandomNormal": (0, "dtype mean scale seed shape"),
    "RandomNormalLike": (1, "dtype mean scale seed"),
    "RandomUniform": (0, "dtype high low seed shape"),
    "RandomUniformLike": (1, "dtype high low seed"),
    "Range": (3, "stash_type"),
    "Reciprocal": (1, ""),
    "ReduceL1": (2, "axes keepdims noop_with_empty_axes"),
    "ReduceL2": (2, "axes keepdims noop_with_empty_axes"),
    "ReduceLogSum": (2, "axes keepdims noop_with_empty_axes"),
    "ReduceLogSumExp": (2, "axes keepdims noop_with_empty_axes"),
    "ReduceMax": (2, "axes keepdims noop_with_empty_axes"),
    "ReduceMean": (2, "axes keepdims noop_with_empty_axes"),
    "ReduceMin": (2, "axes keepdims noop_with_empty_axes"),
    "ReduceProd": (2, "axes keepdims noop_with_empty_axes"),
    "ReduceSum": (2, "axes keepdims noop_with_empty_axes"),
    "ReduceSumSquare": (2, "axes keepdims noop_with_empty_axes"),
    "RegexFullMatch": (1, "pattern"),
    "Relu": (1, ""),
    "Reshape": (2, "allowzero"),
    "Resize": (
        4,
        "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value "
        "keep_aspect_ratio_policy mode nearest_mode",
    ),
    "ReverseSequence": (2, "batch_axis time_axis"),
    "RoiAlign": (3, "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale"),
    "RotaryEmbedding": (4, "interleaved num_heads rotary_embedding_dim"),
    "Round": (1, ""),
    "STFT": (4, "onesided"),
    "Scan": (
        MANY,
        "body directions num_scan_inputs scan_input_axes scan_input_directions scan_output_axes scan_output_directions",
    ),
    "Scatter": (3, "axis"),
    "ScatterElements": (3, "axis reduction"),
    "ScatterND": (3, "reduction"),
    "Selu": (1, "alpha gamma"),
    "SequenceAt": (2, ""),
    "SequenceConstruct": (MANY, ""),
    "SequenceEmpty": (0, "dtype"),
    "SequenceErase": (2, ""),
    "SequenceInsert": (3, ""),
    "SequenceLength": (1, ""),
    "SequenceMap": (MANY, "body"),
    "Shape": (1, "end start"),
    "Shrink": (1, "bias lambd"),
    "Sigmoid": (1, ""),
    "Sign": (1, ""),
    "Sin": (1, ""),
    "Sinh": (1, ""),
    "Size": (1, ""),
    "Slice": (5, "axes ends starts"),
    "Softmax": (1, "axis"),
    "SoftmaxCrossEntropyLoss": (3, "ignore_index reduction"),
    "Softplus": (1, ""),
    "Softsign": (1, ""),
    "SpaceToDepth": (1, "blocksize mode"),
    "Split": (2, "axis num_outputs split"),
    "SplitToSequence": (2, "axis keepdims"),
    "Sqrt": (1, ""),
    "Squeeze": (2, "axes"),
    "StringConcat": (2, ""),
    "StringNormalizer": (1, "case_change_action is_case_sensitive locale stopwords"),
    "StringSplit": (1, "delimiter maxsplit"),
    "Sub": (2, ""),
    "Sum": (MANY, ""),
    "SwiGLU": (2, "alpha"),
    "Swish": (1, "alpha"),
    "Tan": (1, ""),
    "Tanh": (1, ""),
    "TensorScatter": (3, "axis mode"),
    "TfIdfVectorizer": (
        1,
        "max_gram_length max_skip_count min_gram_length mode ngram_counts ngram_indexes pool_int64s "
        "pool_strings weights",
    ),
    "ThresholdedRelu": (1, "alpha"),
    "Tile": (2, ""),
    "TopK": (2, "axis k largest sorted"),
    "Transpose": (1, "perm"),
    "Trilu": (2, "upper"),
    "Unique": (1, "axis sorted"),
    "Unsqueeze": (2, "axes"),
    "Upsample": (2, "mode scales"),
    "Where": (3, ""),
    "Xor": (2, ""),
}
"""Operator → the most inputs it takes, and the names of its attributes; of all operators."""

MICROSOFT_SIGNATURES: Mapping[str, tuple[int, str]] = {
    "DequantizeLinear": (3, "axis block_size"),
    "DynamicQuantizeMatMul": (5, ""),
    "MatMulIntegerToFloat": (7, ""),
    "QGemm": (9, "alpha transA transB"),
    "QLinearAdd": (8, ""),
    "QLinearAveragePool": (5, "auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides"),
    "QLinearConcat": (MANY, "axis"),
    "QLinearGlobalAveragePool": (5, "channels_last"),
    "QLinearLeakyRelu": (5, "alpha"),
    "QLinearMul": (8, ""),
    "QLinearReduceMean": (5, "axes keepdims"),
    "QLinearSigmoid": (5, ""),
    "QLinearSoftmax": (5, "axis opset"),
    "QuantizeLinear": (3, "axis block_size"),
}
"""The same for operators of the domain com.microsoft, which ONNX Runtime's tools write."""

FLAGS = frozenset(
    (
        *("align_corners", "allowzero", "antialias", "ceil_mode", "center_point_box", "count_include_pad"),
        *("detect_negative", "detect_positive", "exclude_outside", "exclusive", "fmod", "input_forget", "interleaved"),
        *("inverse", "is_causal", "keepdims", "largest", "layout", "linear_before_reset", "noop_with_empty_axes"),
        *("onesided", "periodic", "reverse", "saturate", "select_last_index", "sorted", "spatial", "storage_order"),
        *("training_mode", "transA", "transB", "upper"),
    )
)
"""Whole-number attributes that say yes or no. Of other numbers than 0 and 1 engines make different things."""


@cache
def _words(names: str) -> frozenset[str]:
    return frozenset(names.split())


def check_signature(node: Node, signatures: Mapping[str, tuple[int, str]] = SIGNATURES) -> None:
    """Raise PowerlabError where a node of a file has an input or attribute that its operator does not take.

    Names of no operator are refused elsewhere.
    """
    if node.op_type not in signatures:
        return
    most, names = signatures[node.op_type]
    if len(node.inputs) > most:
        raise PowerlabError(f"{node} has {len(node.inputs)} inputs, but {node.op_type} takes {most} at most.")
    known = _words(names)
    for name, value in node.attributes.items():
        if name in FLAGS and isinstance(value, int) and value not in (0, 1):
            raise PowerlabError(f"{node} has {name} {value}, which must be 0 or 1; export the model again.")
        if name not in known:
            raise PowerlabError(
                f"{node} has the attribute {quoted(name)}, which {node.op_type} does not take; export the model again."
            )
