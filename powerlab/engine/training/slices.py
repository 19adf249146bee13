"""A batch in slices that go forward and backward by themselves, their gradients added up.

The mean of the slices' losses is the loss of the batch, and the mean of their gradients its gradient, where images stay
apart; batch norms look at one slice at a time, as they do where several processes share a batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.batch_axis import check_images_apart
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.ir.graph import Graph, quoted
from powerlab.engine.passes import optimise
from powerlab.engine.program.program import Floats
from powerlab.engine.runtime.slices import doubled_shapes, slice_shapes


def sliced_graph(
    model: str | Path | Graph, shapes: Mapping[str, tuple[int, ...]] | None, batch_size: int | None, slices: int
) -> Graph:
    """Return the network for one slice of a batch; a graph that is given counts as that.

    Raises:
        PowerlabError: there is no such model, or its batch cannot be cut into ``slices``.
    """
    if isinstance(slices, bool) or not isinstance(slices, int) or slices < 1:
        raise PowerlabError(f"slices must be an integer from 1 on, not {slices!r}.")
    if isinstance(model, Graph):
        if slices > 1 and not all(info.shape for info in model.inputs):
            raise PowerlabError(f"the model {quoted(model.name)} has an input without a batch; train without slices.")
        return model
    whole = load_graph(model, shapes, batch_size)
    if slices == 1:
        return whole
    graph = load_graph(model, slice_shapes(whole, slices))
    check_images_apart(*(optimise(one) for one in (graph, load_graph(model, doubled_shapes(graph)))))
    return graph


def slice_of(array: Floats, number: int, slices: int) -> Floats:
    """Return a slice of what a step is given for the whole batch, the batch being its first axis."""
    part: Floats = array.reshape(slices, -1)[number]
    return part
