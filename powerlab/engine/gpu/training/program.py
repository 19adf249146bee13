"""A step of training, lowered for a GPU: both passes of a slice, then what is there once, over all slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.choice.rule import by_rule
from powerlab.engine.gpu.images import Image
from powerlab.engine.gpu.lowering import check_lowered, lower_nodes
from powerlab.engine.gpu.lowering.training.updates import UPDATES, Moving
from powerlab.engine.gpu.program import WORD_BYTES, GpuProgram, words
from powerlab.engine.gpu.target import Target
from powerlab.engine.ir.graph import Graph, TensorInfo
from powerlab.engine.passes import optimise
from powerlab.engine.program.storage import Space, Storage
from powerlab.engine.training.step import TrainingStep


class StepProgram(Struct, frozen=True, kw_only=True, eq=False):
    """See the module.

    Attributes:
        program: its dispatches up to ``passes`` are those of a slice; the others are there once, behind those of all
            slices, and begin with what adds up the slices' gradients in the first one's memory.
        passes: how many are a slice's.
        data: what a slice is given: the model's inputs, labels, and what Dropout drops.
        numbers: the optimizer's, by their names, in the order of the input that stands behind the data.
        kept: weights, running statistics, and what the optimizer keeps of weights, where they are.
        gradients: of parameters, likewise; the sums over all slices once a step is done.
        graph: both passes, optimised.
    """

    program: GpuProgram
    passes: int
    data: tuple[TensorInfo, ...]
    numbers: tuple[str, ...]
    kept: Mapping[str, Storage]
    gradients: Mapping[str, Storage]
    graph: Graph


def lower_step(network: Graph, step: TrainingStep, target: Target, slices: int) -> StepProgram:
    """Turn a step into dispatches.

    Args:
        network: of one slice, with the weights to begin with.
        step: that it is trained by.
        target: what it is lowered for.
        slices: parts of the batch.

    Raises:
        PowerlabError: an operator, a type or a size is not supported on a GPU, naming the node.
    """
    graph = optimise(step.graph, for_cores=False)
    moved = {one.before: one for one in (*step.statistics, *step.update.kept)}
    data = tuple(info for info in graph.inputs if info.name not in moved)
    passes = replace(graph, inputs=data, outputs=graph.outputs[:1])
    whole = check_lowered(passes, [info.name for info in data if info.name == step.target.name])
    builder = Builder(graph=passes, target=target, half=False, choose=by_rule(target), bounded=whole.bounded)
    kept = {}
    for name, one in moved.items():
        info = one.of(step.update.graph, step.graph)
        kept[name] = builder.constant(np.zeros(info.elements, np.float32) if one.zero else network.kept_constants[name])
        builder.put_rows(name, kept[name])
    lower_nodes(builder)
    loss = builder.rows(graph.outputs[0].name)
    gradients = {name: _of_its_own(builder, made) for name, made in step.gradients.items()}
    moving = {one.before: _of_its_own(builder, one.after) for one in step.statistics}
    builder.store_outputs()
    count, names = len(builder.dispatches), tuple(step.update.numbers)
    numbers = builder.storage(Space.INPUT, len(data), words(len(names), WORD_BYTES))
    _add_slices(builder, (loss, *gradients.values(), *moving.values()), slices)
    for name, storage in moving.items():
        vectors = storage.floats // 4
        push = (vectors, 1 / slices)
        builder.emit_flat("keep_mean", f"{name}.update", (kept[name], storage, loss), vectors, push=push)
    _emit_updates(builder, step, kept, gradients, (numbers, loss))
    program = builder.program()
    return StepProgram(
        program=replace(program, inputs=(*program.inputs, numbers.floats)),
        passes=count,
        data=data,
        numbers=names,
        kept=kept,
        gradients=gradients,
        graph=graph,
    )


def _of_its_own(builder: Builder, name: str) -> Storage:
    """Return where a tensor lies in rows, which may be added to: in the arena."""
    storage, count = builder.rows(name), builder.graph.tensors[name].elements
    if storage.space is Space.ARENA:
        return storage
    made = builder.room(count)
    builder.convert("pack", f"{name} by itself", made, storage, Image(1, count, 1, 1))
    return made


def _add_slices(builder: Builder, storages: Iterable[Storage], slices: int) -> None:
    """Append what adds the other slices' numbers to the first one's, slice after slice; views of one once."""
    once = {storage.number: storage for storage in storages}
    for number in range(1, slices):
        for storage in once.values():
            count = storage.floats // 4
            other = builder.of_slice(storage, number)
            builder.emit_flat("add_up", f"slice {number}.update", (storage, other), count, push=(count,))


def _emit_updates(
    builder: Builder,
    step: TrainingStep,
    kept: Mapping[str, Storage],
    gradients: Mapping[str, Storage],
    of_step: tuple[Storage, Storage],
) -> None:
    """Append the updates of all weights; ``of_step``: the optimizer's numbers, and the loss."""
    numbers, loss = of_step
    parameters = {given: name for name, given in step.update.gradients.items()}
    for node in step.update.graph.nodes:
        if node.op_type not in UPDATES:
            raise PowerlabError(f"{node} is not supported on a GPU yet; train on the device cpu.")
        weight, gradient, *slots = node.inputs[: 1 + len(node.outputs)]
        moving = Moving(
            weight=kept[weight],
            kept=tuple(kept[name] for name in slots),
            gradient=gradients[parameters[gradient]],
            numbers=numbers,
            loss=loss,
            elements=step.update.graph.tensors[weight].elements,
        )
        UPDATES[node.op_type](builder, node, moving)
