"""How much of a signal quantization leaves: SQNR, the ratio of the power of what was there to that of the error."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from powerlab.engine.ir.graph import Graph
from powerlab.engine.quantization.observe import Arrays, Observed

EXACT_DB = 20 * math.log10(2**24)
"""144.5 dB: float32 has 24 bits, so what is the same to the last one is told apart no further."""


def sqnr_db(signal: float, noise: float) -> float:
    """Return the ratio of two powers in dB, within :data:`EXACT_DB` of 0."""
    if noise == 0:
        return EXACT_DB
    if not math.isfinite(noise) or signal == 0:
        return -EXACT_DB
    return min(EXACT_DB, max(-EXACT_DB, 10 * math.log10(signal / noise)))


def references(graph: Graph, names: Sequence[str], batches: Sequence[Arrays]) -> list[Arrays]:
    """Return what the tensors ``names`` of a graph are for each of the batches."""
    observed = Observed(graph, names)
    return [observed.run(inputs) for inputs in batches]


def tensor_sqnr_db(
    expected: Sequence[Arrays], graph: Graph, seen_as: dict[str, str], batches: Sequence[Arrays]
) -> dict[str, float]:
    """Return the SQNR of tensors in dB, over all batches together.

    Args:
        expected: from :func:`references`.
        graph: the quantized graph.
        seen_as: name of the tensor -> what it is called in the quantized graph.
        batches: inputs, in the order of ``expected``.
    """
    observed = Observed(graph, seen_as.values())
    powers = dict.fromkeys(seen_as, (0.0, 0.0))
    for right, inputs in zip(expected, batches, strict=True):
        found = observed.run(inputs)
        for name, now in seen_as.items():
            true = right[name].astype(np.float64)
            signal, noise = powers[name]
            powers[name] = (signal + float(np.square(true).sum()), noise + float(np.square(true - found[now]).sum()))
    return {name: sqnr_db(*both) for name, both in powers.items()}
