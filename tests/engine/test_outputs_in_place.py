"""Outputs are written where a run wants them, where the memory there is as the arena's would be."""

from __future__ import annotations

import numpy as np
import pytest

from powerlab.engine.ir.graph import Node, TensorInfo
from powerlab.engine.ir.shapes import infer
from powerlab.engine.passes import optimise
from powerlab.engine.prepared.prepared import prepare
from powerlab.engine.program.outputs import written_in_place
from powerlab.engine.runtime.plan import aligned, build_plan, thread_pool
from powerlab.engine.target.tiers import tier_for


@pytest.mark.parametrize(("shape", "copies"), [((8, 32), 0), ((8, 33), 2), ((4, 4), 2)])
def test_outputs_are_written_in_place_where_that_can_be(shape, copies):
    nodes = [
        Node("Exp", "power", ("x",), ("y",)),
        Node("Mul", "product", ("y", "x"), ("z",)),
    ]
    tier = tier_for("fp32")
    program = prepare(optimise(infer("two", nodes, [TensorInfo("x", shape)], ["y", "z"], {})), tier, 1).program
    moved = written_in_place(program)
    assert sum(step.label.endswith(" out") for step in program.steps) == 2
    assert sum(step.label.endswith(" out") for step in moved.steps) == copies
    x = aligned(np.random.default_rng(1).standard_normal(shape).astype(np.float32).reshape(-1))
    y, z = (aligned(np.zeros(x.size, np.float32)) for _ in range(2))
    build_plan(moved, tier, thread_pool(1, 0)).run([x], [y, z])
    np.testing.assert_allclose(y, np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(z, y * x, rtol=1e-6)
