"""The frozen graph every part of the engine's front works on: a reader or the zoo makes one, passes rewrite it.

Names are the edges: a tensor is a graph input, a constant, or the output of exactly one node. ``""`` as a node input
means an optional input left out. Every tensor of a loaded graph has a static shape, batch included.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar, cast

import numpy as np
from msgspec import Struct, field
from msgspec.structs import force_setattr, replace
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.constants import Constants, Value

Array = NDArray[Any]

MAX_AXES = 64
"""numpy's own limit."""

IMAGE_AXES, VOLUME_AXES = 4, 5
"""Axes of images (images, channels, rows, columns) and of volumes, with planes before the rows."""


_NOTHING: frozenset[str] = frozenset()

_NO_ATTRIBUTES: Mapping[str, object] = MappingProxyType({})

_Held = TypeVar("_Held")


def _frozen(values: Mapping[str, _Held]) -> Mapping[str, _Held]:
    """Return a mapping that nobody changes; one that is such already, as of a node or graph before it, as it is."""
    return values if isinstance(values, MappingProxyType) else MappingProxyType(dict(values))


def quoted(name: str) -> str:
    """Return a name from a file as an error message shows it: cut to one line, control characters escaped."""
    return repr(name if len(name) <= 80 else name[:77] + "...")


class NeedsRunError(PowerlabError):
    """A network's shapes cannot be told before a run: the model leaves one open, or a value decides it.

    Attributes:
        tensor: the tensor whose value decides; None where the shape of an input is open.
    """

    def __init__(self, sentence: str, tensor: str | None = None) -> None:
        super().__init__(sentence)
        self.tensor = tensor

    def named(self, before: str) -> NeedsRunError:
        """Return the error with a sentence that begins with ``before``."""
        return type(self)(f"{before}{self}", self.tensor)


class InRoundsError(NeedsRunError):
    """A Loop of many rounds that are alike, or of as many as only a run tells: they are run one after the other."""


class TensorInfo(Struct, frozen=True, gc=False):
    """Name, static shape and element type of one tensor; images are NCHW."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any] = field(default_factory=lambda: np.dtype(np.float32))

    @property
    def elements(self) -> int:
        """Return how many numbers the tensor holds."""
        return math.prod(self.shape)


class Node(Struct, frozen=True):
    """One operator applied to tensors named by ``inputs`` (``""``: absent), making those named by ``outputs``."""

    op_type: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, object] = _NO_ATTRIBUTES

    def __post_init__(self) -> None:
        if not isinstance(self.attributes, MappingProxyType):  # a node is made many times over from one before it
            force_setattr(self, "attributes", MappingProxyType(dict(self.attributes)))

    def input(self, index: int) -> str:
        """Return the name of input ``index``, or ``""`` where the node leaves it out."""
        return self.inputs[index] if index < len(self.inputs) else ""

    def captured(self) -> frozenset[str]:
        """Return the names of the tensors that its bodies read and that are none of its inputs."""
        found = _NOTHING
        for value in self.attributes.values():
            if isinstance(value, Subgraph):
                found |= value.captured()
        return found

    def renamed(self, names: Mapping[str, str], name: str) -> Node:
        """Return the node with another name and tensors called by ``names`` where these have them."""
        attributes = {
            key: value._with_captured(names) if isinstance(value, Subgraph) else value
            for key, value in self.attributes.items()
        }
        inputs, outputs = (tuple(names.get(one, one) for one in side) for side in (self.inputs, self.outputs))
        return Node(self.op_type, name, inputs, outputs, attributes)

    def __str__(self) -> str:
        """Return how an error message names this node."""
        return f"{quoted(self.op_type)[1:-1]} node {quoted(self.name or next(iter(self.outputs), ''))}"


class Subgraph(Struct, frozen=True, dict=True):
    """The body of a Loop or a branch of an If; it reads its ``inputs``, its ``constants``, and tensors around it."""

    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Value]

    def made(self) -> frozenset[str]:
        """Return the names of the tensors that its nodes make."""
        return frozenset(name for node in self.nodes for name in node.outputs if name)

    def captured(self) -> frozenset[str]:
        """Return the names of the tensors around it that it reads, itself or in a body of its own."""
        return self._captured

    @cached_property
    def _captured(self) -> frozenset[str]:
        read = {name for node in self.nodes for name in (*node.inputs, *node.captured()) if name}
        return frozenset({*read, *self.outputs} - self.made() - {*self.inputs, *self.constants})

    def same_each_time(self) -> tuple[Node, ...]:
        """Return its nodes that its inputs do not change, which make the same whenever it runs."""
        changing = {*self.inputs, *self.made()}
        found = []
        for node in self.nodes:
            if changing.isdisjoint((*node.inputs, *node.captured())):
                found.append(node)
                changing.difference_update(node.outputs)
        return tuple(found)

    def without(self, nodes: Collection[Node], names: Mapping[str, str]) -> Subgraph:
        """Return it without its constants and some nodes, reading around it what they make, called by ``names``."""
        left = tuple(node for node in self.nodes if node not in nodes)
        return Subgraph(left, self.inputs, self.outputs, {})._with_captured(names)

    def renamed(self, names: Mapping[str, str], where: str) -> tuple[Node, ...]:
        """Return its nodes with tensors called by ``names`` where these have them, and nodes named after ``where``."""
        return tuple(node.renamed(names, f"{where}/{node.name}"[:160]) for node in self.nodes)

    def _with_captured(self, names: Mapping[str, str]) -> Subgraph:
        """Return it with the tensors around it called by ``names``."""
        own = {*self.made(), *self.inputs, *self.constants}
        outer = {name: new for name, new in names.items() if name not in own}
        return replace(
            self,
            nodes=tuple(node.renamed(outer, node.name) for node in self.nodes),
            outputs=tuple(outer.get(name, name) for name in self.outputs),
        )


class Graph(Struct, frozen=True, dict=True):
    """A whole network: ``nodes`` in topological order, ``tensors`` describing every tensor that occurs.

    ``constants`` are the weights (treat them as read-only); no constant is also an input. Large ones may be recipes
    (:mod:`powerlab.engine.ir.constants`), which ``kept_constants`` returns. ``outside`` are the types of inputs
    and outputs that the model has in float16 or float64: inside, every float is float32. ``opset`` is the version of
    ONNX's operators whose form its nodes have, until passes rewrite them.
    """

    name: str
    nodes: tuple[Node, ...]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    constants: Mapping[str, Array]
    tensors: Mapping[str, TensorInfo]
    outside: Mapping[str, np.dtype[Any]] = field(default_factory=dict)
    opset: int = 17

    def __post_init__(self) -> None:
        force_setattr(self, "constants", Constants(self.constants))
        force_setattr(self, "tensors", _frozen(self.tensors))
        force_setattr(self, "outside", _frozen(self.outside))

    @cached_property
    def operators(self) -> frozenset[str]:
        """Return the operators that its nodes have."""
        return frozenset([node.op_type for node in self.nodes])

    @cached_property
    def kept_constants(self) -> Mapping[str, Value]:
        """Return the constants without making those that have a recipe."""
        return cast("Constants", self.constants).kept

    @cached_property
    def readings(self) -> Mapping[str, int]:
        """Return how many times nodes read each tensor that any of them reads; graph outputs are not counted."""
        found: dict[str, int] = {}
        for node in self.nodes:
            for name in node.inputs:
                found[name] = found.get(name, 0) + 1
        return found

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Return the shape of ``tensor``."""
        return self.tensors[tensor].shape

    def producers(self) -> Mapping[str, Node]:
        """Return the node that makes each tensor made by a node."""
        return self._producers

    def consumers(self) -> Mapping[str, Sequence[Node]]:
        """Return the nodes that read each tensor, once per reading; graph outputs are not listed."""
        return self._consumers

    @cached_property
    def _producers(self) -> Mapping[str, Node]:
        return MappingProxyType({output: node for node in self.nodes for output in node.outputs if output})

    @cached_property
    def _consumers(self) -> Mapping[str, Sequence[Node]]:
        found: dict[str, list[Node]] = {name: [] for name in self.tensors}
        for node in self.nodes:
            for name in node.inputs:
                if name:
                    found[name].append(node)
        return MappingProxyType(found)

    def output_names(self) -> frozenset[str]:
        """Return the names of the graph's outputs."""
        return frozenset([info.name for info in self.outputs])

    def rewritten(
        self,
        nodes: Iterable[Node],
        *,
        constants: Mapping[str, Value] | None = None,
        tensors: Iterable[TensorInfo] = (),
    ) -> Graph:
        """Return this graph with other nodes, with ``constants`` and ``tensors`` added to (or replacing) its own.

        Each added constant gets its TensorInfo by itself.
        """
        infos = {info.name: info for info in tensors}
        if constants:
            infos |= {name: TensorInfo(name, value.shape, value.dtype) for name, value in constants.items()}
        return replace(
            self,
            nodes=tuple(nodes),
            constants=Constants({**self.kept_constants, **constants}) if constants else self.constants,
            tensors=MappingProxyType({**self.tensors, **infos}) if infos else self.tensors,
        )


def convolutions_of(node: Node) -> tuple[Node, ...]:
    """Return the FusedConv nodes a Chain is made of, in order: head, depthwise, and the tail if it has one.

    Nodes of other operators are made of none.
    """
    return cast("tuple[Node, ...]", node.attributes.get("convolutions", ()))


def fresh_name(graph: Graph, base_name: str, taken: Collection[str] = ()) -> str:
    """Return ``base_name``, with a number if a tensor of ``graph`` or one in ``taken`` has that name."""
    name, number = base_name, 1
    while name in graph.tensors or name in taken:
        name = f"{base_name}_{number}"
        number += 1
    return name
