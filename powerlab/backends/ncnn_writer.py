"""Collecting ncnn's layers and weights, and its words for tensors: they have no batch axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph, Node

Floats = NDArray[np.float32]


class Writer:
    """Collects layers; a tensor that several layers read is split, because a blob of ncnn has one reader.

    Args:
        graph: the network.
        largest: tensors that convolutions read as bytes -> the largest number they may be.
    """

    def __init__(self, graph: Graph, largest: Mapping[str, float]) -> None:
        self.graph = graph
        self.largest = largest
        self.readers = graph.consumers()
        self.layers: list[str] = []
        self.blob_count = 0
        self.weights: list[bytes] = []
        self._readings = Counter(name for node in graph.nodes for name in node.inputs if name not in graph.constants)
        self._copies: dict[str, list[str]] = {}
        self._constants = 0

    def layer(
        self,
        kind: str,
        inputs: Sequence[str],
        output: str,
        parameters: Mapping[int, object],
        weights: Sequence[bytes] = (),
    ) -> None:
        """Add a layer that makes ``output``, and where that is read more than once, its copies.

        Args:
            kind: ncnn's name of it.
            inputs: tensors of the graph, constants among them, or parts of a node.
            output: the same.
            parameters: by ncnn's number.
            weights: its own, one behind the other.
        """
        read = [self._read(name) for name in inputs]
        self._add(kind, read, [output], parameters)
        self.weights += weights
        count = self._readings[output]
        if count > 1:
            # An output of the graph that is read too keeps a copy under its own name for the caller.
            self._copies[output] = [f"{output}/{number}" for number in range(count)]
            self._add("Split", [output], list(self._copies[output]), {})

    def _read(self, name: str) -> str:
        if name in self.graph.constants:
            return self.memory(self.constant(name))
        return self._copies[name].pop() if name in self._copies else name

    def memory(self, values: Floats) -> str:
        """Add a layer that makes a constant, whose shape begins with the one image, and return what it makes."""
        name = f"constant/{self._constants}"
        self._constants += 1
        self._add("MemoryData", [], [name], sizes(values.shape))
        self.weights.append(values.tobytes())
        return name

    def _add(self, kind: str, inputs: Sequence[str], outputs: Sequence[str], parameters: Mapping[int, object]) -> None:
        counts = f"{len(inputs)} {len(outputs)}"
        words = [blob(name) for name in (*inputs, *outputs)]
        settings = (f"{key}={value}" for key, value in parameters.items())
        self.layers.append(" ".join((kind, f"layer{len(self.layers)}", counts, *words, *settings)))
        self.blob_count += len(outputs)

    def constant(self, name: str) -> Floats:
        """Return a weight as little-endian float32."""
        return np.ascontiguousarray(self.graph.constants[name], dtype="<f4")

    def part(self, node: Node, name: str) -> str:
        """Return the name of a tensor between the layers that one node becomes; it is read once."""
        return f"{node.outputs[0]}/{name}"


def blob(name: str) -> str:
    """Return a name without white space, which separates words in ncnn's text."""
    return "".join("_" if letter.isspace() else letter for letter in name) or "_"


def axis_of(node: Node, axis: int, rank: int) -> int:
    """Return an axis of a tensor of ``rank`` axes as ncnn counts it.

    Raises:
        PowerlabError: it is that of the batch.
    """
    if axis % rank == 0:
        raise moves_batch(node)
    return axis % rank - 1


def moves_batch(node: Node) -> PowerlabError:
    """Return what says that a node needs the axis that ncnn's tensors lack."""
    return PowerlabError(f"{node} works along the batch axis, which ncnn does not have; use another engine.")


def sizes(shape: Sequence[int]) -> dict[int, object]:
    """Return a shape as parameters of Reshape or MemoryData: width, then height, then channels.

    That of one image is without its first axis; rows of a fully connected layer have all of theirs.
    """
    own = shape[1:] if shape[0] == 1 else shape
    return dict(zip((0, 1, 2), reversed(own), strict=False))
