"""A step of training as two graphs: forward pass, loss and backward pass, and the update of all weights."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.constants import Constants
from powerlab.engine.ir.graph import Graph, TensorInfo, quoted
from powerlab.engine.ops.view import FLOAT32
from powerlab.engine.passes.expand.training import expand_training
from powerlab.engine.passes.simplify.dead_nodes import drop_dead
from powerlab.engine.training.differentiate import differentiate, want_gradients
from powerlab.engine.training.forward import Forward, Mask, forward_pass
from powerlab.engine.training.losses import Target, loss_named
from powerlab.engine.training.merging import merge_equal
from powerlab.engine.training.optimizers import Moved, Optimizer
from powerlab.engine.training.recompute import recomputed
from powerlab.engine.training.tape import GraphTape


class Kept(Struct, frozen=True, kw_only=True):
    """A tensor that stays from step to step.

    Attributes:
        before: the input that brings its value.
        after: the output that takes its new one.
        zero: whether it is 0 at first; else it is the model's constant of the name ``before``.
    """

    before: str
    after: str
    zero: bool

    def of(self, *graphs: Graph) -> TensorInfo:
        """Return what the first graph that has the tensor knows of it."""
        return next(graph.tensors[self.before] for graph in graphs if self.before in graph.tensors)


class Update(Struct, frozen=True, kw_only=True):
    """How weights move.

    Attributes:
        graph: takes weights, their gradients, what the optimizer keeps of them and its numbers; not optimised.
        gradients: parameter -> the input that takes its gradient.
        numbers: the inputs that hold what the optimizer gives for each step, by its names.
        kept: parameters, and what the optimizer keeps of them.
    """

    graph: Graph
    gradients: dict[str, str]
    numbers: dict[str, str]
    kept: tuple[Kept, ...]


class TrainingStep(Struct, frozen=True, kw_only=True):
    """A step of training.

    Attributes:
        graph: forward and backward pass, not optimised; its first output is the loss.
        forward: the forward pass with the loss; gives every tensor of floats that it makes.
        target: what the loss compares with.
        parameters: names of what is trained.
        gradients: parameter -> the output of ``graph`` that holds its gradient.
        statistics: running statistics.
        masks: what is drawn before each step.
        update: how weights move.
    """

    graph: Graph
    forward: Graph
    target: Target
    parameters: tuple[str, ...]
    gradients: dict[str, str]
    statistics: tuple[Kept, ...]
    masks: tuple[Mask, ...]
    update: Update


def training_step(
    graph: Graph, loss: str, optimizer: Optimizer, *, sums: int = 1, recompute: bool = False, whole_cells: bool = False
) -> TrainingStep:
    """Return a step of training of a network.

    Args:
        graph: the network, not optimised.
        loss: name of the loss.
        optimizer: how gradients move weights.
        sums: the update takes the sum of so many gradients, of a part of the batch each.
        recompute: whether the backward pass computes activations again, for which less memory is needed.
        whole_cells: as in :func:`powerlab.engine.training.recurrences.unroll_recurrences`.

    Raises:
        PowerlabError: the network cannot be trained: it has no parameters, an operator without a gradient, or an
            output that the loss does not take.
    """
    add_loss = loss_named(loss)
    forward = forward_pass(graph, whole_cells=whole_cells)
    parameters = tuple(forward.parameters)
    if not parameters:
        raise PowerlabError(f"the model {quoted(graph.name)} has no parameters, so there is nothing to train.")
    tape = GraphTape(forward.graph)
    tape.release((*parameters, *forward.statistics))
    want_gradients(tape, parameters)
    tape.begin("loss")
    added = add_loss(tape, graph)
    made = [name for node in tape.nodes for name in node.outputs if name and tape.info(name).dtype == FLOAT32]
    whole_forward = tape.finish(made)
    gradients = differentiate(tape, parameters, dict(added.seeds))
    statistics = _statistics(forward)
    outputs = [added.value, *(one.after for one in statistics), *dict.fromkeys(gradients.values())]
    whole = merge_equal(expand_training(drop_dead(tape.finish(outputs))))
    return TrainingStep(
        graph=recomputed(whole) if recompute else whole,
        forward=whole_forward,
        target=added.target,
        parameters=parameters,
        gradients=gradients,
        statistics=statistics,
        masks=tuple(forward.masks),
        update=_update(forward.graph, parameters, optimizer, sums),
    )


def _statistics(forward: Forward) -> tuple[Kept, ...]:
    return tuple(Kept(before=before, after=after, zero=False) for before, after in forward.statistics.items())


def _update(network: Graph, parameters: Sequence[str], optimizer: Optimizer, sums: int) -> Update:
    tape = GraphTape(Graph(f"{network.name} update", (), (), (), Constants({}), {}, opset=network.opset))
    for name in parameters:  # before any other, so that inputs have their names
        tape.input(name, network.shape(name))
    numbers = {name: tape.input(name, ()) for name in optimizer.numbers(1)}
    kept, gradients = list[Kept](), dict[str, str]()
    for name in parameters:
        shape = network.shape(name)
        gradients[name] = gradient = tape.input(f"{name}.gradient", shape)
        slots = tuple(tape.input(f"{name}.{slot}", shape) for slot in optimizer.slots)
        tape.begin(f"{name}.update")
        moved = Moved(weight=name, gradient=gradient, kept=slots, share=1 / sums)
        after = optimizer.update(tape, moved, numbers)
        kept += [
            Kept(before=before, after=new, zero=before in slots)
            for before, new in zip((name, *slots), after, strict=True)
        ]
    graph = merge_equal(tape.finish([one.after for one in kept]))
    return Update(graph=graph, gradients=gradients, numbers=numbers, kept=tuple(kept))
