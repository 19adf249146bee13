"""Writing one operator as several others of ONNX: shapes and types of what lies between follow from their rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from powerlab.engine.ir.graph import Node, TensorInfo
from powerlab.engine.ops import Operator, operator
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.rewriting import Rewriter


class Expansion:
    """The nodes that stand for one; call it to add one more.

    Args:
        view: the one.
        rewriter: of its graph.
        rules: gives the rule of a node's operator.

    Attributes:
        nodes: so far, in order.
    """

    def __init__(self, view: NodeView, rewriter: Rewriter, rules: Callable[[Node], Operator] = operator) -> None:
        self.nodes: list[Node] = []
        self._node = view.node
        self._rewriter = rewriter
        self._rules = rules

    def __call__(self, op_type: str, *inputs: str, output: str = "", **attributes: object) -> str:
        """Add a node of an operator of ONNX with one output, and return the output's name.

        Args:
            op_type: the operator.
            inputs: tensors.
            output: a tensor of the graph that it makes; else it makes a new one.
            attributes: of the node.
        """
        return self._add(op_type, inputs, attributes, (output,))[0]

    def several(self, op_type: str, *inputs: str, made: int, **attributes: object) -> tuple[str, ...]:
        """Add a node with ``made`` outputs, and return their names."""
        return self._add(op_type, inputs, attributes, ("",) * made)

    def _add(
        self, op_type: str, inputs: tuple[str, ...], attributes: dict[str, object], outputs: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Add a node; an output without a name gets a new one."""
        name = f"{self._node.name}.{len(self.nodes)}"
        infos = tuple(self.info(tensor) if tensor else None for tensor in inputs)
        placeholders = tuple(output or f"{name}.{number}" for number, output in enumerate(outputs))
        view = NodeView(Node(op_type, name, inputs, placeholders, attributes), infos, tuple(map(self._known, inputs)))
        rule, base_name = self._rules(view.node), f"{self._node.outputs[0]}.{op_type.lower()}"
        made = tuple(
            output or self._rewriter.tensor(base_name, *spec)
            for output, spec in zip(outputs, rule.specs(view), strict=False)
        )
        self.nodes.append(Node(op_type, name, inputs, made, attributes))
        return made

    def _known(self, tensor: str) -> Any:
        known = tensor in self._rewriter.constants or tensor in self._rewriter.graph.constants
        return self._rewriter.kept(tensor) if known else None

    def info(self, tensor: str) -> TensorInfo:
        """Return the shape and type of a tensor, old or new."""
        if tensor in self._rewriter.constants:
            value = self._rewriter.constants[tensor]
            return TensorInfo(tensor, value.shape, value.dtype)
        return self._rewriter.tensors.get(tensor) or self._rewriter.graph.tensors[tensor]

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Return the shape of a tensor, old or new."""
        return self.info(tensor).shape

    def ints(self, values: Iterable[int]) -> str:
        """Add a constant list of integers and return its name."""
        return self._rewriter.constant(f"{self._node.outputs[0]}.ints", np.asarray(list(values), np.int64))

    def whole(self, values: Any) -> str:
        """Add a constant of integers, of any shape, and return its name."""
        return self._rewriter.constant(f"{self._node.outputs[0]}.whole", np.asarray(values, np.int64))

    def floats(self, values: Any) -> str:
        """Add a constant of float32 and return its name."""
        return self._rewriter.constant(f"{self._node.outputs[0]}.floats", np.asarray(values, np.float32))

    def reshape(self, tensor: str, shape: Iterable[int]) -> str:
        """Return a tensor in another shape."""
        return self("Reshape", tensor, self.ints(shape))

    def ending(self, tensor: str, output: str = "") -> list[Node]:
        """Let ``tensor`` be what the old node made, and return all nodes."""
        last = self.nodes[-1] if self.nodes else None
        wanted = output or self._node.outputs[0]
        if last is not None and last.outputs == (tensor,) and last.op_type != "Constant":
            self.nodes[-1] = Node(last.op_type, last.name, last.inputs, (wanted,), last.attributes)
        else:
            self.nodes.append(Node("Identity", f"{self._node.name}.end", (tensor,), (wanted,)))
        return self.nodes
