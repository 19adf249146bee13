"""From a lowered program to the native plan: addresses are decided and weights handed over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import astuple, replace

from powerlab.engine.codegen.pack import ALIGNMENT_BYTES, aligned_floats
from powerlab.engine.program.layout import Layout
from powerlab.engine.program.operand import Operand
from powerlab.engine.program.program import Floats, Part, Program, Step, Tensor
from powerlab.engine.program.storage import FLOAT_BYTES, Space, Storage
from powerlab.engine.runtime.arena import Arena, lay_out, lifetimes
from powerlab.engine.runtime.memory import check_memory
from powerlab.engine.target.tiers import Tier, native_engine

Keep = Callable[[Floats], Floats]

_OPERANDS = ("x", "y", "out", "scratch")

_TAIL_FLOATS = 64
"""Zeros behind constants, for vector loads and for prefetches that run past the end: those a plan's own copies have."""


def thread_pool(threads: int, spin_us: int) -> Any:
    """Return a native ``ThreadPool``.

    Args:
        threads: how many compute, the caller of a plan's ``run`` being one.
        spin_us: how long a waiting thread spins before it sleeps, in microseconds.
    """
    return native_engine().ThreadPool(threads=threads, spin_ns=spin_us * 1000)


def build_plan(
    program: Program,
    tier: Tier,
    pool: Any,
    keep: Keep | None = None,
    *,
    alone: Sequence[bool] = (),
    lender: Any = None,
) -> Any:
    """Return the native ``Plan`` of ``program``.

    Args:
        program: what to run.
        tier: the kernels to use.
        pool: the threads that run it; plans that share them take turns.
        keep: returns the memory in which constants are kept, for plans that have some in common; None: the plan's own.
        alone: of each step whether one thread computes it, which needs no barrier; empty: all threads share all.
        lender: a plan that does not run while this one does, whose arena this one uses if it fits; None: its own.

    Raises:
        PowerlabError: the arena is larger than the memory there is.
    """
    (plan,) = build_plans(program, tier, [pool], keep, alone=alone, lender=lender)
    return plan


def build_plans(
    program: Program,
    tier: Tier,
    pools: Sequence[Any],
    keep: Keep | None = None,
    *,
    alone: Sequence[bool] = (),
    lender: Any = None,
) -> list[Any]:
    """Return a native plan of ``program`` for each pool, which share its weights: see :func:`build_plan`."""
    native, count = native_engine(), len(pools)
    if keep is None and count > 1:
        keep = aligned
    lives = lifetimes(program.steps)
    there = 0 if lender is None else lender.room_floats()
    largest = max((life.storage.floats for life in lives), default=0)
    _check_room(largest, there)  # before they are placed, which may take long
    arena = lay_out(program, lives)
    _check_room(arena.floats * count, there)
    plans = [native.Plan(tier=tier.name, pool=pool, arena_floats=arena.floats, lender=lender) for pool in pools]
    for plan in plans:
        plan.loop(steps=program.looped, images=program.images, apart=program.apart > 1)
    for number, step in enumerate(program.steps):
        shared = step if keep is None else _shareable(step, keep)
        for plan in plans:
            _add(native, plan, arena, shared, alone=bool(alone) and alone[number])
    return plans


def _check_room(floats: int, there: int) -> None:
    """Refuse activations for which there is no memory, where they need more than they may borrow."""
    if floats > there:
        check_memory(FLOAT_BYTES * floats, "the model", "its activations")


def _shareable(step: Step, keep: Keep) -> Step:
    """Return the step with constants that lie as a plan keeps them, so that every plan has the same and no copy."""

    def kept(values: Floats | None) -> Floats | None:
        return None if values is None else keep(values)

    parts = tuple(replace(part, weights=kept(part.weights), bias=kept(part.bias)) for part in step.parts)
    return replace(step, weights=kept(step.weights), bias=kept(step.bias), parts=parts)


def aligned(values: Floats) -> Floats:
    """Return the values where a plan needs no copy of its own to read them."""
    if values.ctypes.data % ALIGNMENT_BYTES == 0 and values.flags.c_contiguous:
        return values
    aligned = aligned_floats(values.size + _TAIL_FLOATS)
    aligned[: values.size] = values.reshape(-1)
    aligned[values.size :] = 0
    return aligned[: values.size]


def _add(native: Any, plan: Any, arena: Arena, step: Step, *, alone: bool) -> None:
    layouts = {name: tensor.layout for name in _OPERANDS if (tensor := getattr(step, name)) is not None}
    plan.add(
        family=step.family,
        label=step.label,
        step=_described(native, step.settings, layouts),
        x=_place(native, arena, step.x),
        y=_place(native, arena, step.y),
        out=_place(native, arena, step.out),
        scratch=_place(native, arena, step.scratch),
        weights=_constant(plan, step.weights),
        bias=_constant(plan, step.bias),
        parts=[_part(native, plan, part) for part in step.parts],
        operands=[_operand(native, arena, operand) for operand in step.operands],
        packed=_packed(native, arena, step),
        alone=alone,
    )


def _packed(native: Any, arena: Arena, step: Step) -> Any:
    """Return where weights and bias lie that another step packs."""
    places: dict[str, int] = {}
    for key, packed in (("weight", step.packed), ("bias", step.packed_bias)):
        if packed is not None:
            places["weights" if key == "weight" else key] = arena.offsets[packed.storage.number] + packed.offset
            places[f"{key}_floats"] = packed.sizes[0]
    return native.PackedWeights(**places)


def _part(native: Any, plan: Any, part: Part) -> Any:
    described = _described(native, part.settings, {"x": part.x, "out": part.out})
    return native.Part(step=described, weights=_constant(plan, part.weights), bias=_constant(plan, part.bias))


def _described(native: Any, settings: Mapping[str, Any], layouts: Mapping[str, Layout]) -> Any:
    """Return a native ``Step`` without weights."""
    described = native.Step()
    for name, value in settings.items():
        setattr(described, name, value)
    for name, layout in layouts.items():
        setattr(described, name, _view(native, layout))
    return described


def _operand(native: Any, arena: Arena, operand: Operand) -> Any:
    place = _place_of(native, arena, operand.storage, operand.offset * operand.element.floats, 0)
    return native.operand(
        element=getattr(native.Element, operand.element.value),
        sizes=list(operand.sizes),
        strides=list(operand.strides),
        place=place,
    )


def _constant(plan: Any, values: Floats | None) -> int:
    return -1 if values is None else int(plan.add_constant(values))


def _view(native: Any, layout: Layout) -> Any:
    return native.View(*astuple(layout)[:-1], *astuple(layout.halo))


def _place(native: Any, arena: Arena, tensor: Tensor | None) -> Any:
    if tensor is None:
        return native.Place()
    return _place_of(native, arena, tensor.storage, tensor.offset + tensor.layout.start, tensor.shift)


def _place_of(native: Any, arena: Arena, storage: Storage, offset: int, shift: int) -> Any:
    share = 0
    if storage.space is Space.ARENA:
        offset += arena.offsets[storage.number]
        share = arena.shares.get(storage.number, 0)
    space = getattr(native.Space, storage.space.value)
    return native.Place(space=space, offset=offset, index=storage.index, shift=shift, share=share)
