"""The first steps of a program for a batch become steps for one image, run for one image after the other."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from powerlab.engine.program.program import Program, Step, Tensor
from powerlab.engine.program.storage import Space


def by_image(program: Program, steps: int, images: int, apart: int) -> Program:
    """Return the program with its first steps run image by image.

    What only these steps touch gets room for one image; what they read from before or leave to the steps behind them
    has all images, and moves on from one to the next.

    Args:
        program: for a batch.
        steps: how many steps, from the first on; those before the first that does not go by images.
        images: of the batch.
        apart: threads that take images through by themselves; 1: all take each together.
    """
    looped = next((i for i, step in enumerate(program.steps[:steps]) if not _by_images(step, images)), steps)
    if looped == 0 or images == 1:
        return program
    kept = {tensor.storage.number for step in program.steps[looped:] for tensor in step.tensors()}
    first = tuple(_one_image(step, kept, images) for step in program.steps[:looped])
    return replace(program, steps=first + program.steps[looped:], looped=looped, images=images, apart=apart)


def _operands(step: Step) -> tuple[Tensor, ...]:
    return tuple(tensor for tensor in (step.out, step.x, step.y) if tensor is not None)


def _by_images(step: Step, images: int) -> bool:
    """Tell whether a step's operands have an image each; general tensors have none, whatever their sizes."""
    return not step.operands and all(tensor.layout.n == images for tensor in _operands(step))


def _one_image(step: Step, kept: Collection[int], images: int) -> Step:
    return replace(
        step,
        out=_first(step.out, kept, images) if step.out else None,
        x=_first(step.x, kept, images) if step.x else None,
        y=_first(step.y, kept, images) if step.y else None,
    )


def _first(tensor: Tensor, kept: Collection[int], images: int) -> Tensor:
    layout, storage = replace(tensor.layout, n=1), tensor.storage
    if storage.space is Space.ARENA and storage.number not in kept:
        return replace(tensor, layout=layout, storage=replace(storage, floats=storage.floats // images))
    return replace(tensor, layout=layout, shift=tensor.layout.image)
