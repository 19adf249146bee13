"""What the bytes of an optimised graph stand for: TFLite wants the step of each tensor, kernels want ratios alone."""

from __future__ import annotations

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import number
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.quantization import QUANTIZED
from powerlab.engine.passes.quantized.scales import Scale, tensor_scale


def scales_of(loaded: Graph, optimised: Graph) -> dict[str, Scale]:
    """Return the scale of each tensor of bytes.

    Args:
        loaded: the graph whose QuantizeLinear nodes say most of them.
        optimised: what the passes made of it.

    Raises:
        PowerlabError: nothing says the scale of one.
    """
    said = {node.outputs[0]: tensor_scale(loaded, node) for node in loaded.nodes if node.op_type == "QuantizeLinear"}
    scales: dict[str, Scale] = {}
    for node in optimised.nodes:
        if node.op_type in QUANTIZED and node.op_type != "Dequantize" and not node.attributes.get("floats"):
            scales[node.outputs[0]] = said.get(node.outputs[0]) or _scale(scales, node)
    return scales


def _scale(scales: dict[str, Scale], node: Node) -> Scale:
    """Return the scale of what a node makes, from what it says of itself and from its first input."""
    if node.op_type == "Quantize":
        return Scale(number(node, "step"), int(number(node, "zero")))
    before = scales[node.inputs[0]]
    if node.op_type in ("QuantAdd", "QuantPool") and "x_ratio" in node.attributes:
        return Scale(before.step / number(node, "x_ratio"), int(number(node, "zero")))
    if node.op_type in ("QuantConcat", "QuantPool", "QuantResize", "QuantView"):
        return before
    raise PowerlabError(f"what the bytes of {node} stand for is not said anywhere; use another engine for this model.")
