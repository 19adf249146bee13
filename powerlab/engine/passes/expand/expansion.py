"""Writing one operator as several others of ONNX: shapes and types of what lies between follow from their rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from powerlab.engine.ir.graph import Node, TensorInfo
from powerlab.engine.ops import operator
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.rewriting import Rewriter


class Expansion:
    """The nodes that stand for one; call it to add one more.

    Attributes:
        nodes: so far, in order.
    """

    def __init__(self, view: NodeView, rewriter: Rewriter) -> None:
        self.nodes: list[Node] = []
        self._node = view.node
        self._rewriter = rewriter

    def __call__(self, op_type: str, *inputs: str, output: str = "", **attributes: object) -> str:
        """Add a node of an operator of ONNX with one output, and return the output's name.

        Args:
            op_type: the operator.
            inputs: tensors.
            output: a tensor of the graph that it makes; else it makes a new one.
            attributes: of the node.
        """
        name = f"{self._node.name}.{len(self.nodes)}"
        node = Node(op_type, name, inputs, (output or name,), attributes)
        infos = tuple(self.info(tensor) if tensor else None for tensor in inputs)
        shape, dtype = operator(node).infer(NodeView(node, infos, tuple(map(self._known, inputs))))
        made = output or self._rewriter.tensor(f"{self._node.outputs[0]}.{op_type.lower()}", shape, dtype)
        self.nodes.append(Node(op_type, name, inputs, (made,), attributes))
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
