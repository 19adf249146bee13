"""RotaryEmbedding: every form against the standard's own reference implementation."""

from __future__ import annotations

import numpy as np
import pytest
from general_models import alike, node_bytes, run_engine
from onnx.reference import ReferenceEvaluator


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("part", [0, 4])
@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("placed", [True, False])
def test_rotary_embedding(interleaved, part, flat, placed):
    width, half = 8, (part or 8) // 2
    inputs = {"x": normal(2, 3, 2 * width) if flat else normal(2, 2, 3, width)}
    shape = (10, half) if placed else (2, 3, half)
    inputs |= {"c": normal(*shape, seed=1), "s": normal(*shape, seed=2)}
    if placed:
        inputs["p"] = np.int64([[0, 1, 2], [7, 8, 9]])
    options = {"interleaved": interleaved, "rotary_embedding_dim": part, **({"num_heads": 2} if flat else {})}
    data = node_bytes("RotaryEmbedding", inputs, opset=23, **options)
    (expected,) = ReferenceEvaluator(data).run(None, inputs)
    alike(run_engine(data, inputs), {"y": expected}, rtol=1e-4, atol=1e-5)
