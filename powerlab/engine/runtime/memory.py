"""The least memory a model takes, whatever engine runs it, and how much there is to take.

A kernel that promises more memory than it has ends the process that uses it; so a model is refused before that.
"""

from __future__ import annotations

import resource

import psutil  # type: ignore[import-untyped]

from powerlab.cgroups import memory_left_bytes
from powerlab.domain.errors import TooLargeError
from powerlab.engine.ir.constants import Value
from powerlab.engine.ir.graph import Graph
from powerlab.sysroot import Sysroot

_GIB = 2**30

ALWAYS_THERE_BYTES = 2**24
"""Less than that needs no look at how much there is, which takes half a millisecond."""


def available_bytes(sysroot: Sysroot | None = None) -> int:
    """Return how much more memory this process may take: of the machine, its control groups and its address space.

    Args:
        sysroot: where the limits of control groups are read; None: this machine.
    """
    available = int(psutil.virtual_memory().available)
    left = memory_left_bytes(sysroot or Sysroot())
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    room = None if limit == resource.RLIM_INFINITY else max(0, limit - psutil.Process().memory_info().vms)
    return min(bound for bound in (available, left, room) if bound is not None)


def check_memory(needed_bytes: int, what: object, why: str) -> None:
    """Refuse what needs more memory than there is; what needs little is let pass.

    Args:
        needed_bytes: what it is going to take at least.
        what: a node or a model, as the sentence begins.
        why: what for, in two or three words.

    Raises:
        TooLargeError: there is less.
    """
    if needed_bytes <= ALWAYS_THERE_BYTES:
        return
    left = available_bytes()
    if needed_bytes > left:
        raise TooLargeError(
            f"{what} needs {needed_bytes / _GIB:.3g} GiB for {why}, and {left / _GIB:.3g} GiB are left to this "
            "process; use a smaller batch, smaller images or a smaller model."
        )


def value_bytes(value: Value) -> int:
    """Return the bytes of a constant, whether it is there or a recipe."""
    return value.size * value.dtype.itemsize


def weight_bytes(graph: Graph) -> int:
    """Return the bytes of all constants."""
    return sum(map(value_bytes, graph.kept_constants.values()))


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
