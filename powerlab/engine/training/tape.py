"""A graph that grows: nodes are added one by one, and the shapes of what they make follow from their rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any

import numpy as np

from powerlab.engine.ir.constants import Constants, Value
from powerlab.engine.ir.graph import Graph, Node, TensorInfo, fresh_name
from powerlab.engine.ops import training_operator
from powerlab.engine.ops.view import FLOAT32, NodeView


class GraphTape:
    """Takes the nodes of a step of training behind those of its forward pass.

    Args:
        graph: the forward pass, not optimised.

    Attributes:
        nodes: so far, in order.
        wanted: tensors that are parameters or made of some: of these alone a gradient is computed.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.nodes: list[Node] = list(graph.nodes)
        self.wanted: set[str] = set()
        self._inputs: list[TensorInfo] = list(graph.inputs)
        self._constants: dict[str, Value] = dict(graph.kept_constants)
        self._tensors: dict[str, TensorInfo] = dict(graph.tensors)
        self._prefix = "training"
        self._makers: dict[str, Node] = {}

    def __call__(self, op_type: str, *inputs: str, **attributes: object) -> str:
        """Add a node with one output, and return the output's name."""
        return self.add(op_type, inputs, attributes)

    def add(self, op_type: str, inputs: Sequence[str], attributes: dict[str, object]) -> str:
        """Add a node with one output, and return the output's name."""
        return self.several(op_type, *inputs, made=1, **attributes)[0]

    def several(self, op_type: str, *inputs: str, made: int, **attributes: object) -> tuple[str, ...]:
        """Add a node with ``made`` outputs, and return their names."""
        first = self._fresh(f"{self._prefix}.{op_type.lower()}")
        outputs = (first, *(self._fresh(f"{first}.{number}") for number in range(1, made)))
        node = Node(op_type, first, inputs, outputs, attributes)
        view, rule = self.view(node), training_operator(node)
        for name, (shape, dtype) in zip(outputs, rule.specs(view), strict=False):
            self._tensors[name] = TensorInfo(name, shape, dtype)
        self.nodes.append(node)
        self._makers.update(dict.fromkeys(outputs, node))
        return outputs

    def maker(self, tensor: str) -> Node | None:
        """Return the node added here that makes a tensor; None: it was in the forward pass already, or is an input."""
        return self._makers.get(tensor)

    def begin(self, label: str) -> None:
        """Name the nodes that are added from now on after ``label``: what they belong to."""
        self._prefix = label

    def view(self, node: Node) -> NodeView:
        """Return what is known of a node's inputs."""
        infos = tuple(self._tensors[name] if name else None for name in node.inputs)
        return NodeView(node, infos, tuple(self._constants.get(name) for name in node.inputs))

    def input(self, base_name: str, shape: tuple[int, ...], dtype: np.dtype[Any] = FLOAT32) -> str:
        """Add an input of the graph and return its name."""
        info = TensorInfo(self._fresh(base_name), shape, dtype)
        self._inputs.append(info)
        self._tensors[info.name] = info
        return info.name

    @property
    def constants(self) -> Set[str]:
        """Names of the tensors whose values are known."""
        return self._constants.keys()

    def release(self, constants: Iterable[str]) -> None:
        """Let constants be inputs of the graph: a run brings their values."""
        for name in constants:
            del self._constants[name]
            self._inputs.append(self._tensors[name])

    def wants(self, tensor: str) -> bool:
        """Say whether anybody needs the gradient of ``tensor``."""
        return tensor in self.wanted

    def info(self, tensor: str) -> TensorInfo:
        """Return the shape and type of a tensor."""
        return self._tensors[tensor]

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return self._tensors[tensor].shape

    def floats(self, values: Any) -> str:
        """Add a constant of float32 and return its name."""
        return self._constant("numbers", np.asarray(values, np.float32))

    def ints(self, values: Iterable[int]) -> str:
        """Add a constant list of integers and return its name."""
        return self._constant("ints", np.asarray(list(values), np.int64))

    def reshape(self, tensor: str, shape: Iterable[int]) -> str:
        """Return a tensor in another shape; itself where it has that shape."""
        sizes = tuple(shape)
        return tensor if self.shape(tensor) == sizes else self("Reshape", tensor, self.ints(sizes))

    def sum_to(self, tensor: str, shape: tuple[int, ...]) -> str:
        """Return a tensor summed over the axes along which ``shape`` was broadcast to it."""
        found = self.shape(tensor)
        if found == shape:
            return tensor
        filled = (*(1,) * (len(found) - len(shape)), *shape)
        axes = [axis for axis, (has, wanted) in enumerate(zip(found, filled, strict=True)) if has != wanted]
        summed = self("ReduceSum", tensor, self.ints(axes), keepdims=1) if axes else tensor
        return self.reshape(summed, shape)

    def finish(self, outputs: Sequence[str]) -> Graph:
        """Return the graph with these outputs."""
        return Graph(
            self._graph.name,
            tuple(self.nodes),
            tuple(self._inputs),
            tuple(self._tensors[name] for name in outputs),
            Constants(self._constants),
            self._tensors,
            opset=self._graph.opset,
        )

    def _constant(self, base_name: str, value: Value) -> str:
        name = self._fresh(f"{self._prefix}.{base_name}")
        self._constants[name] = value
        self._tensors[name] = TensorInfo(name, value.shape, value.dtype)
        return name

    def _fresh(self, base_name: str) -> str:
        return fresh_name(self._graph, base_name, self._tensors)
