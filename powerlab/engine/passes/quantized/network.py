"""Which tensors of a graph can be bytes, and what rules ask about the nodes around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from powerlab.engine.ir.graph import VOLUME_AXES, Graph, Node
from powerlab.engine.ir.scratch import Scratch
from powerlab.engine.ops.quantization import UINT8
from powerlab.engine.passes.quantized.scales import Scale, tensor_scale
from powerlab.engine.passes.rewriting import Rewriter, Sole, sole_among


@dataclass(slots=True)
class Network:
    """A graph whose nodes are looked at one after the other.

    Attributes:
        graph: as it was.
        rewriter: takes up constants.
        sole: tells the node that makes a tensor if it has one reader and is no output of the graph.
        bytes: tensor → scale of those that may be bytes: made by QuantizeLinear, read by DequantizeLinear alone.
        added: tensor → node that makes it, of those that rules want beside the one they give.
        scratch: memory for weights that are looked at.
    """

    graph: Graph
    rewriter: Rewriter
    bytes: dict[str, Scale] = field(init=False)
    producers: Mapping[str, Node] = field(init=False)
    added: dict[str, Node] = field(default_factory=dict, init=False)
    scratch: Scratch = field(default_factory=Scratch, init=False)
    sole: Sole = field(init=False)
    _outputs: frozenset[str] = field(init=False)
    _readers: Mapping[str, Sequence[Node]] = field(init=False)

    def __post_init__(self) -> None:
        """Find the tensors that may be bytes."""
        self.producers = self.graph.producers()
        self._outputs = self.graph.output_names()
        self._readers = self.graph.consumers()
        self.sole = sole_among(self.producers, self.graph)
        scales = {
            node.outputs[0]: tensor_scale(self.graph, node)
            for node in self.graph.nodes
            if node.op_type == "QuantizeLinear"
        }
        for node in self.graph.nodes:
            for index, name in enumerate(node.inputs):
                if name not in scales:
                    continue
                reads = node.op_type == "DequantizeLinear" and index == 0
                if not reads or tensor_scale(self.graph, node) != scales[name]:
                    scales[name] = None
        self.bytes = {
            name: scale
            for name, scale in scales.items()
            if scale is not None and name not in self._outputs and 2 <= len(self.graph.shape(name)) <= VOLUME_AXES
        }

    def quantized(self, tensor: str) -> str | None:
        """Return the tensor of bytes that ``tensor`` is dequantized from; None where it is another."""
        node = self.producers.get(tensor)
        if node is None or node.op_type != "DequantizeLinear" or node.inputs[0] not in self.bytes:
            return None
        return node.inputs[0]

    def new_bytes(self, base_name: str, shape: tuple[int, ...], scale: Scale) -> str:
        """Add a tensor of bytes, which a node in ``added`` makes, and return its name."""
        name = self.rewriter.tensor(base_name, shape, UINT8)
        self.bytes[name] = scale
        return name

    def readers(self, tensor: str) -> Sequence[Node]:
        """Return the nodes that read a tensor, once per reading."""
        return self._readers[tensor]

    def sizes(self, tensor: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return self.graph.shape(tensor)

    def value(self, tensor: str) -> np.ndarray | None:
        """Return the value of a constant; None for what is none."""
        return self.graph.constants[tensor] if tensor in self.graph.kept_constants else None
