"""How much of a signal quantization leaves: SQNR, the ratio of the power of what was there to that of the error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from powerlab.domain.accuracy import sqnr_db
from powerlab.engine.ir.graph import Graph
from powerlab.engine.quantization.observe import Arrays, Observed


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
