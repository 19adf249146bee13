"""What a model in training answers: planned once, with the weights that it has at the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.expand.expansion import Expansion
from powerlab.engine.passes.expand.training import expand_training
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes
from powerlab.engine.program.program import Floats
from powerlab.engine.program.storage import FLOAT_BYTES
from powerlab.engine.runtime.memory import check_memory
from powerlab.engine.target.tiers import Tier
from powerlab.engine.training.forward import composed
from powerlab.engine.training.plans import StepPlan
from powerlab.engine.training.recurrences import unroll_recurrences
from powerlab.engine.training.tape import GraphTape


class Answers:
    """A network whose weights and running statistics are inputs, as in a step: an inference packs them anew.

    Args:
        network: of one slice, as it was loaded.
        moved: names of the constants that training moves.
        tier: the kernels to use.
        pool: threads.

    Raises:
        PowerlabError: there is not enough memory.
    """

    def __init__(self, network: Graph, moved: Sequence[str], tier: Tier, pool: Any) -> None:
        tape = GraphTape(unroll_recurrences(_with_plain_norms(composed(network))))
        tape.release(name for name in moved if name in tape.constants)
        self._outputs = network.outputs
        self._plan = StepPlan(tape.finish([info.name for info in network.outputs]), tier, pool.threads)
        needed = self._plan.arena_bytes + FLOAT_BYTES * sum(info.elements for info in self._outputs)
        check_memory(needed, f"answers of {network.name!r}", "its activations")
        self._plan.build(pool)

    def of(self, arrays: Mapping[str, Floats]) -> dict[str, NDArray[np.float32]]:
        """Return output name -> array.

        Args:
            arrays: inputs, weights and running statistics by name.
        """
        found = {info.name: np.empty(info.elements, np.float32) for info in self._outputs}
        self._plan.run({**arrays, **found})
        return {info.name: found[info.name].reshape(info.shape) for info in self._outputs}


def _with_plain_norms(graph: Graph) -> Graph:
    """Return the graph with batch norms by running statistics as arithmetic, whose operands need not be constants."""
    return rewrite_nodes(expand_training(graph), {"BatchNormalization": _batch_norm})


def _batch_norm(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    add = Expansion(view, rewriter)
    source, scale, bias, mean, variance = view.node.inputs
    wide = (1, -1, *(1,) * (len(view.shape(0)) - 2))
    deviation = add("Sqrt", add("Add", variance, add.floats(view.number("epsilon", 1e-5))))
    factor = add("Div", scale, deviation)
    offset = add("Sub", bias, add("Mul", mean, factor))
    scaled = add("Mul", source, add.reshape(factor, wide))
    return add.ending(add("Add", scaled, add.reshape(offset, wide)))
