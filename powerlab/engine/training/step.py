"""A step of training as one graph: forward pass, loss, backward pass and update of all weights."""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph, quoted
from powerlab.engine.ops.view import FLOAT32
from powerlab.engine.passes.expand.training import expand_training
from powerlab.engine.passes.simplify.dead_nodes import drop_dead
from powerlab.engine.training.differentiate import differentiate, want_gradients
from powerlab.engine.training.forward import Mask, forward_pass
from powerlab.engine.training.losses import Target, loss_named
from powerlab.engine.training.merging import merge_equal
from powerlab.engine.training.optimizers import Optimizer
from powerlab.engine.training.parameters import parameters_of
from powerlab.engine.training.tape import GraphTape


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A tensor that stays from step to step.

    Attributes:
        before: the input that brings its value.
        after: the output that takes its new one.
        zero: whether it is 0 at first; else it is the model's constant of the name ``before``.
    """

    before: str
    after: str
    zero: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep:
    """A step of training.

    Attributes:
        graph: not optimised; its first output is the loss.
        target: what the loss compares with.
        numbers: the inputs that hold what the optimizer gives for each step, by its names.
        parameters: names of what is trained.
        gradients: the output that holds the gradient of a parameter, where they were asked for.
        kept: what stays from step to step: parameters, what the optimizer keeps of them, running statistics.
        statistics: names of the running statistics.
        masks: what is drawn before each step.
    """

    graph: Graph
    target: Target
    numbers: dict[str, str]
    parameters: tuple[str, ...]
    gradients: dict[str, str]
    kept: tuple[Kept, ...]
    statistics: tuple[str, ...]
    masks: tuple[Mask, ...]


def training_step(graph: Graph, loss: str, optimizer: Optimizer, *, give_gradients: bool = False) -> TrainingStep:
    """Return a step of training of a network.

    Args:
        graph: the network, not optimised.
        loss: name of the loss.
        optimizer: how gradients move weights.
        give_gradients: whether the graph gives the gradients of all parameters, too.

    Raises:
        PowerlabError: the network cannot be trained: it has no parameters, an operator without a gradient, or an
            output that the loss does not take.
    """
    output = _logits(graph) if loss == "softmax_cross_entropy" else _only_output(graph)
    forward = forward_pass(graph)
    parameters = parameters_of(forward.graph)
    tape = GraphTape(forward.graph)
    tape.release((*parameters, *forward.statistics))
    want_gradients(tape, parameters)
    tape.begin("loss")
    added = loss_named(loss)(tape, output)
    found = differentiate(tape, parameters, dict(added.seeds))
    numbers = {name: tape.input(name, ()) for name in optimizer.numbers(1)}
    kept = [Kept(before=before, after=after, zero=False) for before, after in forward.statistics.items()]
    for name in parameters:
        tape.begin(f"{name}.update")
        slots = tuple(tape.input(f"{name}.{slot}", tape.shape(name)) for slot in optimizer.slots)
        after = optimizer.update(tape, name, found[name], slots, numbers)
        kept += [
            Kept(before=before, after=new, zero=before in slots)
            for before, new in zip((name, *slots), after, strict=True)
        ]
    gradients = found if give_gradients else {}
    outputs = [added.value, *(one.after for one in kept), *dict.fromkeys(gradients.values())]
    return TrainingStep(
        graph=merge_equal(expand_training(drop_dead(tape.finish(outputs)))),
        target=added.target,
        numbers=numbers,
        parameters=parameters,
        gradients=gradients,
        kept=tuple(kept),
        statistics=tuple(forward.statistics),
        masks=tuple(forward.masks),
    )


def _only_output(graph: Graph) -> str:
    floats = [info.name for info in graph.outputs if info.dtype == FLOAT32]
    if len(floats) != 1:
        raise PowerlabError(
            f"the model {quoted(graph.name)} has {len(floats)} outputs of numbers; training takes models with one."
        )
    return floats[0]


def _logits(graph: Graph) -> str:
    """Return what the last softmax of a network takes, or its output where it ends in none."""
    output = _only_output(graph)
    maker = graph.producers().get(output)
    return maker.inputs[0] if maker is not None and maker.op_type == "Softmax" else output
