"""What each dispatch has to do: that of its node, at the last of them; those before it only move numbers."""

from __future__ import annotations

from msgspec.structs import replace

from powerlab.engine.codegen.work import StepWork, node_work
from powerlab.engine.gpu.program import WORD_BYTES, Dispatch, GpuProgram
from powerlab.engine.gpu.recorder import label_of
from powerlab.engine.ir.graph import Graph


def dispatch_work(graph: Graph, program: GpuProgram) -> tuple[StepWork, ...]:
    """Return the work of every dispatch, in their order.

    Args:
        graph: the optimised graph that was lowered.
        program: what became of it.
    """
    nodes = {label_of(node): node for node in graph.nodes}
    last = {dispatch.label: index for index, dispatch in enumerate(program.dispatches)}

    def work(index: int, one: Dispatch) -> StepWork:
        if one.label not in nodes or last[one.label] != index:
            return _move(one)
        own = node_work(graph, nodes[one.label])
        return replace(own, flops=own.flops + sum(node_work(graph, nodes[label]).flops for label in one.covered))

    return tuple(work(index, one) for index, one in enumerate(program.dispatches))


def _move(dispatch: Dispatch) -> StepWork:
    floats = [storage.floats for storage in dispatch.buffers]
    return StepWork(
        label=dispatch.label,
        operator="",
        output="",
        shape=(floats[0],),
        flops=0,
        bytes_moved=WORD_BYTES * sum(floats),
    )
