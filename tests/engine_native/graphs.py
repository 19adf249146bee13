"""Small graphs as the passes leave them, and running them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from powerlab.engine import Session
from powerlab.engine.ir.graph import Graph, Node, TensorInfo
from powerlab.engine.target.tiers import TIER_VARIABLE

NO_CLAMP = (-np.inf, np.inf)


@contextmanager
def use_tier(name: str) -> Iterator[None]:
    before = os.environ.get(TIER_VARIABLE)
    os.environ[TIER_VARIABLE] = name
    try:
        yield
    finally:
        if before is None:
            del os.environ[TIER_VARIABLE]
        else:
            os.environ[TIER_VARIABLE] = before


def run_twice(graph: Graph, threads: int = 1, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    """Run a graph, poison its memory and run it again: a result that changes was read from where nobody wrote."""
    session = Session(graph, threads=threads)
    first = session.run(inputs)
    session.poison()
    second = session.run(inputs)
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name])
    return second


class GraphMaker:
    """Builds a graph node by node."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.inputs: list[TensorInfo] = []
        self.constants: dict[str, np.ndarray] = {}
        self.tensors: dict[str, TensorInfo] = {}

    def input(self, name: str, *shape: int) -> str:
        info = TensorInfo(name, shape)
        self.inputs.append(info)
        self.tensors[name] = info
        return name

    def constant(self, values: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = values.astype(np.float32)
        self.tensors[name] = TensorInfo(name, values.shape)
        return name

    def node(self, op_type: str, inputs: tuple[str, ...], shape: tuple[int, ...], **attributes: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(Node(op_type, f"n{len(self.nodes)}", inputs, (name,), attributes))
        self.tensors[name] = TensorInfo(name, shape)
        return name

    def conv(
        self,
        x: str,
        weights: np.ndarray,
        bias: np.ndarray | None = None,
        residual: str = "",
        *,
        strides=(1, 1),
        pads=(0, 0, 0, 0),
        dilations=(1, 1),
        group=1,
        clamp=NO_CLAMP,
    ) -> str:
        n, _, h, w = self.tensors[x].shape
        out_h = (h + pads[0] + pads[2] - (weights.shape[2] - 1) * dilations[0] - 1) // strides[0] + 1
        out_w = (w + pads[1] + pads[3] - (weights.shape[3] - 1) * dilations[1] - 1) // strides[1] + 1
        return self.node(
            "FusedConv",
            (x, self.constant(weights), "" if bias is None else self.constant(bias), residual),
            (n, weights.shape[0], out_h, out_w),
            strides=strides,
            pads=pads,
            dilations=dilations,
            group=group,
            clamp=clamp,
        )

    def graph(self, *outputs: str) -> Graph:
        outs = tuple(self.tensors[name] for name in outputs)
        return Graph("test", tuple(self.nodes), tuple(self.inputs), outs, self.constants, self.tensors)
