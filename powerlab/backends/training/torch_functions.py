"""The operators of a model as it was loaded, as functions of torch that have gradients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from powerlab.backends.training.batch import learning_output
from powerlab.backends.training.torch_recurrences import recurrent_rules
from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.resizing import resizing, whole_factors
from powerlab.engine.ops.view import NodeView

Tensor = Any
Rule = Callable[..., Tensor]

_KEEP_NO_OUTPUT = frozenset({"Add", "BatchNormalization", "Conv", "Gemm"})
"""Operators whose gradients do not need what they made, so that an activation may overwrite it."""


@dataclass(frozen=True, slots=True)
class Function:
    """One operator: what it reads and makes."""

    compute: Callable[..., Tensor]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def torch_functions(torch: Any, graph: Graph) -> tuple[Function, ...]:
    """Return what computes a model's output for its loss, in order.

    Raises:
        PowerlabError: it has an operator that is not translated.
    """
    softmax = () if learning_output(graph) == graph.outputs[0].name else (graph.outputs[0].name,)
    nodes = [node for node in graph.nodes if node.outputs != softmax]
    rules = _rules(torch, graph)
    missing = next((node for node in nodes if node.op_type not in rules), None)
    if missing is not None:
        raise PowerlabError(f"{missing} is not translated for training in torch yet; use another engine.")
    return tuple(Function(_bound(rules[node.op_type], node), node.inputs, node.outputs) for node in nodes)


def _bound(rule: Rule, node: Node) -> Callable[..., Tensor]:
    return lambda *inputs: rule(node, *inputs)


def _rules(torch: Any, graph: Graph) -> Mapping[str, Rule]:
    """Return operator -> what computes it from the node and its inputs."""
    functional = torch.nn.functional
    readers = Counter([*graph.output_names(), *(name for node in graph.nodes for name in node.inputs)])
    makers = graph.producers()

    def overwrites(node: Node) -> bool:
        maker = makers.get(node.inputs[0])
        return readers[node.inputs[0]] == 1 and maker is not None and maker.op_type in _KEEP_NO_OUTPUT

    def conv(node: Node, x: Tensor, weight: Tensor, bias: Tensor = None) -> Tensor:
        has: Mapping[str, Any] = node.attributes
        top, left, bottom, right = has.get("pads", (0, 0, 0, 0))
        pads = (top, left)
        if pads != (bottom, right):
            x, pads = functional.pad(x, (left, right, top, bottom)), (0, 0)
        return functional.conv2d(
            x, weight, bias, has.get("strides", 1), pads, has.get("dilations", 1), has.get("group", 1)
        )

    def gemm(node: Node, a: Tensor, b: Tensor, c: Tensor = None) -> Tensor:
        return functional.linear(a, b if node.attributes.get("transB", 0) else b.T, c)

    def window(node: Node) -> tuple[Any, ...]:
        """Return a pool's kernel, strides and pads."""
        has: Mapping[str, Any] = node.attributes
        top, left, bottom, right = has.get("pads", (0, 0, 0, 0))
        return has["kernel_shape"], has.get("strides", 1), (top, left) if (top, left) == (bottom, right) else None

    def average_pool(node: Node, x: Tensor) -> Tensor:
        counts = bool(node.attributes.get("count_include_pad", 0))
        rounds_up, (kernel, strides, pads) = bool(node.attributes.get("ceil_mode", 0)), window(node)
        if pads is None:
            raise PowerlabError(f"{node} pads one side more than the other, which torch's pools do not.")
        return functional.avg_pool2d(x, kernel, strides, pads, rounds_up, counts)

    def max_pool(node: Node, x: Tensor) -> Tensor:
        kernel, strides, pads = window(node)
        if pads is None:  # on one side more than on the other, which torch's pools do not
            top, left, bottom, right = cast("tuple[int, ...]", node.attributes["pads"])
            x, pads = functional.pad(x, (left, right, top, bottom), value=float("-inf")), 0
        return functional.max_pool2d(x, kernel, strides, pads, ceil_mode=bool(node.attributes.get("ceil_mode", 0)))

    def clip(_node: Node, x: Tensor, low: Tensor = None, high: Tensor = None) -> Tensor:
        return torch.clamp(x, *(None if end is None else float(end) for end in (low, high)))

    def batch_norm(node: Node, x: Tensor, scale: Tensor, shift: Tensor, *running: Tensor) -> Tensor:
        has: Mapping[str, Any] = node.attributes
        moved = 1 - has.get("momentum", 0.9)
        return functional.batch_norm(x, *running, scale, shift, True, moved, has.get("epsilon", 1e-5))

    def layer_norm(node: Node, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        return functional.layer_norm(x, x.shape[-1:], scale, shift, node.attributes.get("epsilon", 1e-5))

    def gather(node: Node, x: Tensor, index: Tensor) -> Tensor:
        axis = int(str(node.attributes.get("axis", 0)))
        picked = x.index_select(axis, index.reshape(-1).to(x.device))
        return picked.reshape(*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])

    def lrn(node: Node, x: Tensor) -> Tensor:
        has: Mapping[str, Any] = node.attributes
        return functional.local_response_norm(
            x, has["size"], has.get("alpha", 1e-4), has.get("beta", 0.75), has.get("bias", 1.0)
        )

    def hard_sigmoid(node: Node, x: Tensor) -> Tensor:
        has: Mapping[str, Any] = node.attributes
        return torch.clamp(x * has.get("alpha", 0.2) + has.get("beta", 0.5), 0, 1)

    def dropout(node: Node, x: Tensor, ratio: Tensor = None, _training: Tensor = None) -> Tensor:
        return functional.dropout(x, node.attributes.get("ratio", 0.5) if ratio is None else float(ratio), True)

    def resize(node: Node, x: Tensor, *_more: Tensor) -> Tensor:
        factors = whole_factors(resizing(NodeView.of(graph, node)))
        if factors is None:
            raise PowerlabError(f"{node} is not translated for training in torch yet; use another engine.")
        return functional.interpolate(x, scale_factor=tuple(map(float, factors)), mode="nearest")

    def reshape(_node: Node, x: Tensor, shape: Tensor) -> Tensor:
        return x.reshape([x.shape[axis] if size == 0 else size for axis, size in enumerate(shape.tolist())])

    return {
        **recurrent_rules(torch),
        "Add": lambda _, a, b: a + b,
        "AveragePool": average_pool,
        "BatchNormalization": batch_norm,
        "Clip": clip,
        "Concat": lambda node, *parts: torch.cat(parts, node.attributes["axis"]),
        "Conv": conv,
        "Div": lambda _, a, b: a / b,
        "Dropout": dropout,
        "Erf": lambda _, x: torch.erf(x),
        "Expand": lambda _, x, shape: x.expand(shape.tolist()),
        "Flatten": lambda _, x: x.flatten(1),
        "Gather": gather,
        "Gemm": gemm,
        "GlobalAveragePool": lambda _, x: x.mean((2, 3), keepdim=True),
        "HardSigmoid": hard_sigmoid,
        "HardSwish": lambda _, x: functional.hardswish(x),
        "Identity": lambda _, x: x,
        "LRN": lrn,
        "LayerNormalization": layer_norm,
        "LeakyRelu": lambda node, x: functional.leaky_relu(x, node.attributes.get("alpha", 0.01), overwrites(node)),
        "MatMul": lambda _, a, b: a @ b,
        "MaxPool": max_pool,
        "Mul": lambda _, a, b: a * b,
        "Relu": lambda node, x: functional.relu(x, overwrites(node)),
        "Reshape": reshape,
        "Resize": resize,
        "Sigmoid": lambda _, x: torch.sigmoid(x),
        "Squeeze": lambda _, x, axes: x.squeeze(tuple(axes.tolist())),
        "Softplus": lambda _, x: functional.softplus(x, threshold=100.0),
        "Softmax": lambda node, x: functional.softmax(x, node.attributes.get("axis", -1)),
        "Transpose": lambda node, x: x.permute(node.attributes["perm"]),
    }
