"""A model as its file gives it: inputs may have open sizes, and nothing is known yet of the tensors that nodes make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from powerlab.engine.ir.constants import Value
from powerlab.engine.ir.element_types import engine_dtype
from powerlab.engine.ir.graph import Graph, NeedsRunError, Node, TensorInfo
from powerlab.engine.ir.shapes import infer

OPEN = -1
"""The size of an axis that only a run tells."""


class OpenModel(Struct, frozen=True):
    """What a graph is made from once every shape is known.

    Attributes:
        name: of the network.
        nodes: in any order.
        inputs: sizes left open are ``OPEN``.
        open_ranks: names of the inputs of which not even the number of axes is known; their shape says nothing.
        outputs: name -> shape as the file declares it, ``OPEN`` where it leaves a size open; () where it declares none.
        constants: name -> value.
        outside: types of inputs and outputs that the file declares as float16 or float64.
        hint: a sentence that says how to give the first open shape.
        opset: the version of ONNX's operators.
    """

    name: str
    nodes: tuple[Node, ...]
    inputs: tuple[TensorInfo, ...]
    outputs: Mapping[str, tuple[int, ...]]
    constants: Mapping[str, Value]
    outside: Mapping[str, np.dtype[Any]] = field(default_factory=dict)
    open_ranks: frozenset[str] = frozenset()
    hint: str = ""
    opset: int = 17

    def graph(self, *, unrolled: bool = True) -> Graph:
        """Return the graph, every shape static; ``unrolled`` is that of :func:`powerlab.engine.ir.shapes.infer`.

        Raises:
            NeedsRunError: a shape is open, or decided by a value that only a run gives.
            PowerlabError: the nodes do not fit together, or hold what the engine does not have.
        """
        if self.hint:
            raise NeedsRunError(self.hint)
        graph = infer(self.name, self.nodes, self.inputs, tuple(self.outputs), self.constants, unrolled=unrolled)
        # A file may promise a float where it makes integers, which take twice the memory: what it makes counts.
        outside = {
            name: dtype for name, dtype in self.outside.items() if graph.tensors[name].dtype == engine_dtype(dtype)
        }
        return replace(graph, outside=outside, opset=self.opset)
