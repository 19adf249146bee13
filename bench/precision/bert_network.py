"""BERT for the benchmarks: https://arxiv.org/abs/1810.04805, with seeded random weights, as exporters write it.

The base model's sizes (12 layers of 768 numbers and 12 heads) on 128 tokens: 85.1 M parameters beside the embeddings,
11.2 GMAC. The vocabulary is small: which rows are looked up costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from msgspec.structs import replace

from powerlab.engine.frontend.zoo.builder import INPUT_NAME, RELU_GAIN, Builder
from powerlab.engine.ir.graph import Graph, TensorInfo
from powerlab.engine.ir.shapes import infer

_WIDTH = 768
_HEADS = 12
_LAYERS = 12
_TOKENS = 128
_VOCABULARY = 1000


class _Builder(Builder):
    """Takes whole numbers, which pick rows of a table."""

    def build_of_tokens(self, output: str, shape: tuple[int, ...]) -> Graph:
        """Return the checked graph, whose output is named ``y``."""
        nodes = [replace(node, outputs=("y",)) if node.outputs == (output,) else node for node in self._nodes]
        tokens = TensorInfo(INPUT_NAME, shape, np.dtype(np.int64))
        return infer("bert", nodes, (tokens,), ("y",), self._constants)


def build(batch: int) -> Graph:
    """Return BERT for so many sequences of 128 tokens; its output has the shape (batch, 128, 768)."""
    net = _Builder("bert", seed=18, features=_WIDTH)
    x = net.node("Gather", (net.embedding(_VOCABULARY, _WIDTH), INPUT_NAME), _WIDTH, axis=0)
    x = net.layer_norm(net.node("Add", (x, net.embedding(1, _TOKENS, _WIDTH)), _WIDTH))
    for _ in range(_LAYERS):
        x = net.layer_norm(net.add(net.attention(x, _HEADS), x))
        x = net.layer_norm(net.add(net.dense(net.gelu(net.dense(x, 4 * _WIDTH)), _WIDTH, gain=RELU_GAIN), x))
    return net.build_of_tokens(x, (batch, _TOKENS))


NETWORKS: Mapping[str, Callable[[int], Graph]] = {"bert": build}
"""Networks that the zoo lacks, by name: each takes the batch size."""
