"""The two ways passes change a graph: node by node through a table of rules, and node into its producer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from powerlab.engine.ir.constants import Value, value_of
from powerlab.engine.ir.graph import Array, Graph, Node, TensorInfo, fresh_name
from powerlab.engine.ops.view import FLOAT32, NodeView


class Rewriter:
    """What a rule may ask for and add while a graph is rewritten."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.constants: dict[str, Value] = {}
        self.tensors: dict[str, TensorInfo] = {}
        self._producers: Mapping[str, Node] | None = None  # few rules ask
        self._added: set[str] = set()

    def producer(self, tensor: str) -> Node | None:
        """Return the node of the old graph that makes ``tensor``; None for inputs and constants."""
        if self._producers is None:
            self._producers = self.graph.producers()
        return self._producers.get(tensor)

    def value(self, constant: str) -> Array:
        """Return the value of a constant, old or added."""
        return value_of(self.kept(constant))

    def is_constant(self, name: str) -> bool:
        """Tell whether a tensor is a constant, old or added."""
        return name in self.constants or name in self.graph.constants

    def kept(self, constant: str) -> Value:
        """Return a constant, old or added: its value, or the recipe that makes it."""
        return self.constants[constant] if constant in self.constants else self.graph.kept_constants[constant]

    def constant(self, base_name: str, value: Value) -> str:
        """Add a constant named ``base_name`` or alike and return its name."""
        name = self._fresh(base_name)
        self.constants[name] = value
        return name

    def tensor(self, base_name: str, shape: tuple[int, ...], dtype: np.dtype[Any] = FLOAT32) -> str:
        """Add a tensor that a new node will make and return its name."""
        name = self._fresh(base_name)
        self.tensors[name] = TensorInfo(name, shape, dtype)
        return name

    def _fresh(self, base_name: str) -> str:
        name = fresh_name(self.graph, base_name, self._added)
        self._added.add(name)
        return name

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Return the shape of a tensor, old or added."""
        return self.tensors[tensor].shape if tensor in self.tensors else self.graph.shape(tensor)

    def finish(self, nodes: Sequence[Node]) -> Graph:
        """Return the graph with ``nodes`` and what was added."""
        return self.graph.rewritten(nodes, constants=self.constants, tensors=self.tensors.values())


def one_number(graph: Graph, name: str) -> float | None:
    """Return a constant of a graph that is one number; None where it is another one, or computed."""
    if name not in graph.constants or graph.tensors[name].elements != 1:
        return None
    return float(graph.constants[name].reshape(-1)[0])


Rule = Callable[[NodeView, Rewriter], Sequence[Node] | None]
"""Gives the nodes that stand for the one seen, the last making its output; None: it stays."""


def rewrite_nodes(graph: Graph, rules: Mapping[str, Rule]) -> Graph:
    """Return the graph with each node whose operator is in ``rules`` replaced by what its rule gives."""
    if graph.operators.isdisjoint(rules):
        return graph
    rewriter = Rewriter(graph)
    nodes: list[Node] = []
    changed = False
    for node in graph.nodes:
        rule = rules.get(node.op_type)
        replacement = rule(NodeView.of(graph, node), rewriter) if rule else None
        nodes.extend((node,) if replacement is None else replacement)
        changed = changed or replacement is not None
    return rewriter.finish(nodes) if changed else graph


Sole = Callable[[str], Node | None]
"""Gives the node that makes a tensor, or the one that reads it, if that has one reader and is no output."""

Fuse = Callable[[Node, Sole, Rewriter], tuple[Node, ...] | None]
"""Gives the merged node and the producers it took in, or None where the node stays as it is."""


def sole_among(made: Mapping[str, Node], graph: Graph) -> Sole:
    """Return what tells which of the nodes ``made`` so far, by tensor, makes a tensor that has one reader only."""
    readings, outputs = graph.readings, graph.output_names()

    def sole(tensor: str) -> Node | None:
        return made.get(tensor) if readings.get(tensor) == 1 and tensor not in outputs else None

    return sole


def sole_readers(graph: Graph) -> Sole:
    """Return what tells the node that reads a tensor, if it is the only one and the tensor is no output."""
    readers, outputs = graph.consumers(), graph.output_names()

    def sole(tensor: str) -> Node | None:
        return readers[tensor][0] if len(readers[tensor]) == 1 and tensor not in outputs else None

    return sole


def fuse_into_producers(graph: Graph, fuse: Fuse) -> Graph:
    """Return the graph after offering each node, in order, to ``fuse``.

    A merged node stands where its later half stood, so everything it reads is there before it.
    """
    rewriter = Rewriter(graph)
    made: dict[str, Node] = {}
    sole = sole_among(made, graph)
    for node in graph.nodes:
        fused = fuse(node, sole, rewriter)
        if fused is None:
            made[node.outputs[0]] = node
        else:
            merged, *absorbed = fused
            for producer in absorbed:
                del made[producer.outputs[0]]
            made[merged.outputs[0]] = merged
    if len(made) == len(graph.nodes):
        return graph
    return rewriter.finish(tuple(made.values()))
