"""The judge of gradients: central differences of a node in float64, by the onnx package's own reference in numpy."""

from __future__ import annotations

import numpy as np
from engine_models import load_bytes
from general_models import node_bytes
from onnx.reference import ReferenceEvaluator

from powerlab.engine import Session
from powerlab.engine.passes import optimise
from powerlab.engine.passes.expand.training import expand_training
from powerlab.engine.passes.simplify.dead_nodes import drop_dead
from powerlab.engine.training.differentiate import differentiate, want_gradients
from powerlab.engine.training.forward import forward_pass
from powerlab.engine.training.merging import merge_equal
from powerlab.engine.training.tape import GraphTape

TOLERANCE = 2e-4
"""Largest difference over the largest value of the judge."""

_STEP = 1e-5


def check_gradients(
    operator, inputs, *, judge=None, constants=None, order=None, outputs=("y",), opset=18, **attributes
):
    """Hold the gradients of every float input of a node against central differences.

    ``judge`` computes the node of one input where the reference has not all digits, or not the old form.
    """
    generator = np.random.default_rng(11)
    more = {"constants": constants, "order": order, "outputs": outputs, "opset": opset, **attributes}
    graph = load_bytes(node_bytes(operator, inputs, **more))
    weights = generator.standard_normal(graph.shape("y")).astype(np.float32)
    wanted = [name for name, value in inputs.items() if value.dtype.kind == "f"]
    found = _of_engine(graph, inputs, weights, wanted)
    wide = {name: np.asarray(value, np.float64) if value.dtype.kind == "f" else value for name, value in inputs.items()}
    wide_constants = {
        name: np.asarray(value, np.float64) if value.dtype.kind == "f" else value
        for name, value in (constants or {}).items()
    }
    reference = ReferenceEvaluator(node_bytes(operator, wide, **{**more, "constants": wide_constants}))

    def total(given):
        made = judge(*given.values()) if judge else reference.run(["y"], given)[0]
        return float(np.sum(made * weights))

    for name in wanted:
        expected = np.empty(wide[name].shape)
        for at in np.ndindex(expected.shape):
            sides = []
            for sign in (1, -1):
                moved = np.array(wide[name])
                moved[at] += sign * _STEP
                sides.append(total({**wide, name: moved}))
            expected[at] = (sides[0] - sides[1]) / (2 * _STEP)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found[name], expected, rtol=0, atol=TOLERANCE * max(scale, 1e-3), err_msg=name)


def _of_engine(graph, inputs, weights, wanted):
    """Return the gradients that the engine computes, the same bits on one thread and on three."""
    whole = gradient_graph(graph, weights, wanted)
    outputs = {name: info.name for name, info in zip(wanted, whole.outputs, strict=True)}
    whole = optimise(whole)
    one, three = (Session(whole, threads=threads).run(inputs) for threads in (1, 3))
    for output in outputs.values():
        np.testing.assert_array_equal(one[output], three[output])
    return {name: one[output] for name, output in outputs.items()}


def gradient_graph(graph, weights, wanted):
    """Return the graph, not optimised, of the gradients of the sum of ``weights`` times the output ``y``.

    Without weights they are an input.
    """
    tape = GraphTape(forward_pass(graph).graph)
    want_gradients(tape, wanted)
    seed = tape.input("upstream", graph.shape("y")) if weights is None else tape.floats(weights)
    gradients = differentiate(tape, wanted, {"y": seed})
    outputs = [tape("Identity", gradients[name]) for name in wanted]
    return merge_equal(expand_training(drop_dead(tape.finish(outputs))))
