"""The least memory a model takes, whatever engine runs it."""

from __future__ import annotations

from powerlab.engine.graph import Graph


def weight_bytes(graph: Graph) -> int:
    """Return the bytes of all constants."""
    return sum(value.size * value.dtype.itemsize for value in graph.kept_constants.values())


def live_bytes(graph: Graph) -> int:
    """Return the bytes of the tensors that must be there at the same time, at the step where they are most.

    A tensor lives from the node that makes it to the last one that reads it; inputs from the beginning, outputs to the
    end. Engines may need more, for views and workspaces, but none can do with less unless it computes something twice.
    """
    last = len(graph.nodes)
    first_step = {info.name: 0 for info in graph.inputs}
    last_step: dict[str, int] = {}
    for step, node in enumerate(graph.nodes):
        first_step.update(dict.fromkeys(node.outputs, step))
        last_step.update(dict.fromkeys(node.inputs, step))
    last_step.update(dict.fromkeys((info.name for info in graph.outputs), last))
    changes = [0] * (last + 2)
    for name, begin in first_step.items():
        if name in graph.tensors:
            info = graph.tensors[name]
            changes[begin] += info.elements * info.dtype.itemsize
            changes[last_step.get(name, begin) + 1] -= info.elements * info.dtype.itemsize
    most = now = 0
    for change in changes:
        now += change
        most = max(most, now)
    return most
