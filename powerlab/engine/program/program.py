"""A lowered network: steps over tensors whose layouts are decided and whose addresses are not yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import Layout
from powerlab.engine.program.operand import Operand
from powerlab.engine.program.storage import Space, Storage

Floats = NDArray[np.float32]


class Tensor(Struct, frozen=True, gc=False):
    """A storage seen through a layout, ``offset`` floats from the storage's start.

    In steps that are run image by image it moves on by ``shift`` floats from one image to the next.
    """

    storage: Storage
    layout: Layout
    offset: int = 0
    shift: int = 0

    def seen_as(self, layout: Layout, offset: int = 0) -> Tensor:
        """Return the same memory through another layout."""
        return Tensor(self.storage, layout, self.offset + offset, self.shift)


class Part(Struct, frozen=True, eq=False):
    """A layer of several that a step is made of; where its operands lie is the kernel's matter: it has layouts only."""

    x: Layout
    out: Layout
    weights: Floats | None
    bias: Floats | None
    settings: Mapping[str, Any]


class Step(Struct, frozen=True, eq=False):
    """One kernel call.

    Attributes:
        family: what kernel, as the native registry calls it.
        label: the node it computes.
        out: what it writes; None where it has operands.
        x: what it reads; None likewise.
        y: the residual or second operand.
        weights: packed for the kernel.
        bias: one value a channel, filled up to whole blocks.
        packed: weights that another step of the program packs.
        packed_bias: such a bias.
        scratch: memory it may use as it likes, one image of the layout for each thread.
        choice: what was chosen for it, where there was a choice.
        parts: the layers it is made of, where it is several.
        operands: of a general kernel: the tensors it writes, then those it reads.
        settings: further fields of the native ``Step``.
    """

    family: str
    label: str
    out: Tensor | None = None
    x: Tensor | None = None
    y: Tensor | None = None
    weights: Floats | None = None
    bias: Floats | None = None
    packed: Operand | None = None
    packed_bias: Operand | None = None
    scratch: Tensor | None = None
    choice: Choice | None = None
    parts: tuple[Part, ...] = ()
    operands: tuple[Operand, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_cut(self) -> bool:
        """Say whether its work was cut for a number of threads: weights of most layers, rounds and scratch may be."""
        layer = self.weights is not None and self.family != "gemv"
        cut = layer or self.packed is not None or self.scratch is not None or bool(self.parts)
        return cut or self.settings.get("rounds", 1) > 1

    def tensors(self) -> tuple[Tensor | Operand, ...]:
        """Return every tensor the step touches."""
        views = tuple(tensor for tensor in (self.out, self.x, self.y, self.scratch) if tensor is not None)
        packed = tuple(operand for operand in (self.packed, self.packed_bias) if operand is not None)
        return (*views, *packed, *self.operands)


class Program(Struct, frozen=True, eq=False):
    """A network ready to get its addresses.

    Attributes:
        steps: in the order they run.
        hidden_inputs: constants that steps read as if they were inputs; they follow the real inputs.
        looped: how many steps, from the first on, are run image by image.
        images: of how many images.
        apart: threads that claim images of these steps and take each through all of them, with memory of their own;
            1: every image is taken through by all threads together.
    """

    steps: tuple[Step, ...]
    hidden_inputs: tuple[Floats, ...]
    looped: int = 0
    images: int = 1
    apart: int = 1

    def own_storages(self) -> frozenset[int]:
        """Return the numbers of storages of which each thread that takes images apart has its own."""
        if self.apart == 1:
            return frozenset()

        def touched(steps: tuple[Step, ...]) -> frozenset[int]:
            storages = (tensor.storage for step in steps for tensor in step.tensors())
            return frozenset(storage.number for storage in storages if storage.space is Space.ARENA)

        return touched(self.steps[: self.looped]) - touched(self.steps[self.looped :])
