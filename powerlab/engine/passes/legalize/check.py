"""The end of the passes: what is left must be what the native core runs."""

from __future__ import annotations

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.functions import KERNELS
from powerlab.engine.ops.quantization import QUANTIZED
from powerlab.engine.ops.training import TRAINING
from powerlab.engine.ops.view import FLOAT32

GENERAL = frozenset(
    {
        "ArgMost",
        "Concat",
        "CumSum",
        "Elementwise",
        "Expand",
        "Gather",
        "GatherElements",
        "GatherND",
        "General",
        "GroupNorm",
        "Norm",
        "Pad",
        "Product",
        "Reduce",
        "Reshape",
        "RoiAlign",
        "RowNorm",
        "ScatterElements",
        "ScatterND",
        "Slice",
        "Tile",
        "TopK",
        "Transpose",
    }
)
"""Operators of the native core that take tensors of any shape and type, computed or constant."""

LOWERED = frozenset(
    {
        *GENERAL,
        *QUANTIZED,
        *KERNELS,
        *TRAINING,
        "Add",
        "AveragePool",
        "Chain",
        "ChannelNorm",
        "Clamp",
        "ComputedConv",
        "ComputedConvTranspose",
        "FusedConv",
        "FusedConvTranspose",
        "FusedGemm",
        "FusedLstm",
        "FusedVolumeConv",
        "GlobalAveragePool",
        "Hardmax",
        "ImagePad",
        "Interpolate",
        "LRN",
        "LogSoftmax",
        "MaxPool",
        "Multiply",
        "Pool",
        "Recurrence",
        "Resize",
        "ScaleShift",
        "Softmax",
    }
)
"""The operators of the native core; those that are neither general nor on bytes compute in float32."""

_WEIGHTS = {
    "Chain": range(2, 8),
    "ChannelNorm": (1, 2),
    "FusedConv": (1, 2),
    "FusedConvTranspose": (1, 2),
    "FusedGemm": (1, 2),
    "FusedLstm": (1, 2, 3),
    "FusedVolumeConv": (1, 2),
    "Interpolate": (1, 2),
    "QuantConv": (1, 2, 3),
    "QuantLookup": (1,),
    "QuantScale": (1, 2),
    "QuantVolumeConv": (1, 2, 3),
    "Recurrence": (1, 2, 3, 4),
    "ScaleShift": (1, 2),
}
"""Operator → which of its inputs are constants; all others are computed."""

_TAKES_BOTH = {
    "AdamUpdate": 0,
    "BatchNorm": 1,
    "BatchNormGradient": 2,
    "ComputedConv": 1,
    "ComputedConvTranspose": 1,
    "FusedLstm": 4,
    "Recurrence": 5,
    "SgdUpdate": 0,
}
"""Operator → from which input on it reads a constant like any other tensor."""


def takes_computed(node: Node, index: int) -> bool:
    """Tell whether a node of the native core takes a computed tensor, and no constant, as the input ``index``."""
    if node.op_type in GENERAL or index >= _TAKES_BOTH.get(node.op_type, len(node.inputs)):
        return False
    return index not in _WEIGHTS.get(node.op_type, ())


def check_lowered(graph: Graph) -> Graph:
    """Return the graph unchanged.

    Raises:
        PowerlabError: a node, input or output is left that the native core does not take.
    """
    for node in graph.nodes:
        if node.op_type not in LOWERED:
            raise PowerlabError(f"{node} is left after all passes: the engine runs this operator on constants only.")
        if node.op_type in GENERAL:
            continue
        if node.op_type not in QUANTIZED and graph.tensors[node.outputs[0]].dtype != FLOAT32:
            raise PowerlabError(
                f"{node} computes {graph.tensors[node.outputs[0]].dtype}; the engine runs in float32 only."
            )
        for index, name in enumerate(node.inputs):
            constant = name in graph.kept_constants
            wrong = takes_computed(node, index) if constant else index in _WEIGHTS.get(node.op_type, ())
            if name and wrong:
                kind = "a constant" if constant else "a computed tensor"
                raise PowerlabError(f"{node} has {kind} as input {index + 1}, which the engine does not take there.")
    return graph
