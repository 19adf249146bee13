"""Programs lowered from random graphs: memory is never shared by what is alive together, and nothing is read unwritten.

Beside them what small graphs become, step by step: a change of lowering shows here as a change of text.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_native.graphs import NO_CLAMP, GraphMaker
from powerlab.engine.codegen import lower
from powerlab.engine.program.layout import PLANAR_ALIGNMENT, Layout, divide_up
from powerlab.engine.program.operand import Element, Operand
from powerlab.engine.program.program import Program, Step, Tensor
from powerlab.engine.program.storage import Space
from powerlab.engine.runtime.arena import ALIGNMENT_FLOATS, Arena, lay_out, lifetimes
from powerlab.engine.target.tiers import Tier

SSE4 = Tier("sse4", 4, 2, 6)
AVX2 = Tier("avx2", 8, 2, 6)
AVX512 = Tier("avx512", 16, 4, 6)
NEON = Tier("neon", 4, 2, 8)
TIERS = [SSE4, AVX2, AVX512, NEON]


@st.composite
def graphs(draw):
    """A graph of up to a dozen nodes, each reading any tensor that fits."""
    maker = GraphMaker()
    shape = (draw(st.integers(1, 2)), draw(st.sampled_from([3, 8, 16, 17])), draw(st.integers(3, 9)), 7)
    names = [maker.input("x", *shape)]
    for _ in range(draw(st.integers(1, 12))):
        x = draw(st.sampled_from(names))
        shape = maker.tensors[x].shape
        images, channels, h, w = shape
        kind = draw(st.sampled_from(["conv", "conv", "depthwise", "pool", "add", "clamp", "scale", "concat", "lrn"]))
        if kind == "conv":
            kernel = draw(st.sampled_from([1, 3, 3]))
            outputs = draw(st.sampled_from([1, 16, 24]))
            residuals = [name for name in names if maker.tensors[name].shape == (images, outputs, h, w)]
            weights = np.ones((outputs, channels, kernel, kernel))
            residual = draw(st.sampled_from(residuals)) if residuals and draw(st.booleans()) else ""
            names.append(maker.conv(x, weights, residual=residual, pads=(kernel // 2,) * 4))
        elif kind == "depthwise" and channels > 1:
            names.append(maker.conv(x, np.ones((channels, 1, 3, 3)), pads=(1, 1, 1, 1), group=channels))
        elif kind == "pool":
            windows = {"kernel": (3, 3), "strides": (1, 1), "pads": (1, 1, 1, 1)}
            names.append(maker.node("MaxPool", (x,), shape, **windows))
        elif kind == "add":
            other = draw(st.sampled_from([name for name in names if maker.tensors[name].shape == shape]))
            names.append(maker.node("Add", (x, other), shape, clamp=NO_CLAMP))
        elif kind == "scale":
            factors = maker.constant(np.ones(channels)), maker.constant(np.zeros(channels))
            names.append(maker.node("ScaleShift", (x, *factors), shape, clamp=NO_CLAMP))
        elif kind == "concat" and channels < 100:
            other = draw(st.sampled_from([name for name in names if maker.tensors[name].shape[2:] == shape[2:]]))
            total = channels + maker.tensors[other].shape[1]
            names.append(maker.node("Concat", (x, other), (images, total, h, w), axis=1))
        elif kind == "lrn":
            names.append(maker.node("LRN", (x,), shape, size=5, alpha=1.0, beta=0.75, bias=1.0))
        else:
            names.append(maker.node("Clamp", (x,), shape, clamp=NO_CLAMP))
    outputs = draw(st.lists(st.sampled_from(names[1:]), min_size=1, max_size=3, unique=True))
    return maker.graph(*outputs)


def floats_of(tensor: Tensor) -> np.ndarray:
    """Return every float of the storage that a view reaches, halo included, as places in the storage."""
    layout: Layout = tensor.layout
    halo = layout.halo
    lanes = np.arange(min(layout.pixel, layout.plane) if layout.pixel > 1 else 1)
    rows = np.arange(-halo.top, layout.h + halo.bottom) * layout.row
    columns = np.arange(-halo.left, layout.w + halo.right) * layout.pixel
    blocks, images = np.arange(layout.blocks) * layout.plane, np.arange(layout.n) * layout.image
    grid = images[:, None, None, None, None] + blocks[:, None, None, None] + rows[:, None, None] + columns[:, None]
    return (grid + lanes + layout.start + tensor.offset).ravel()


@settings(deadline=None, max_examples=100)
@given(graph=graphs(), tier=st.sampled_from(TIERS), threads=st.integers(1, 4))
def test_storages_of_any_program_that_are_alive_together_lie_apart(graph, tier, threads):
    program = lower(graph, tier, threads)
    arena = lay_out(program)
    spans = [(life, arena.offsets[life.storage.number]) for life in lifetimes(program.steps)]
    for life, begin in spans:
        end = begin + life.storage.floats
        assert begin % ALIGNMENT_FLOATS == 0
        assert end <= arena.floats
        for other, start in spans:
            if other is not life and life.first <= other.last and other.first <= life.last:
                assert end <= start or start + other.storage.floats <= begin
    assert arena.floats <= sum(life.storage.floats + ALIGNMENT_FLOATS for life, _ in spans)


@settings(deadline=None, max_examples=60)
@given(graph=graphs(), tier=st.sampled_from(TIERS))
def test_no_step_reads_a_float_that_no_step_wrote_or_that_another_tensor_took(graph, tier):
    program = lower(graph, tier, 2)
    arena = lay_out(program)
    whole = divide_up(arena.floats, PLANAR_ALIGNMENT) * PLANAR_ALIGNMENT
    holder = np.zeros(whole, np.int32)  # the storage whose value each float of the arena holds
    for step in program.steps:
        for operand in (step.x, step.y):
            if operand is not None and operand.storage.space is Space.ARENA:
                assert (holder[places(arena, operand)] == operand.storage.number).all(), step.label
        for operand in step.operands[1:]:
            if operand.storage.space is Space.ARENA:
                assert (holder[general_places(arena, operand)] == operand.storage.number).all(), step.label
        for operand in step.operands[:1]:
            if operand.storage.space is Space.ARENA:
                fill_up(holder, general_places(arena, operand), operand.storage.number)
        for written in (step.scratch, step.out):
            if written is not None and written.storage.space is Space.ARENA:
                holder[places(arena, written)] = written.storage.number
                if written.layout.pixel == 1:
                    fill_up(holder, places(arena, written), written.storage.number)


def fill_up(holder: np.ndarray, written: np.ndarray, number: int) -> None:
    """Images are filled up to whole vectors, which others read and nobody looks at."""
    holder.reshape(-1, PLANAR_ALIGNMENT)[np.unique(written // PLANAR_ALIGNMENT)] = number


def places(arena: Arena, tensor: Tensor) -> np.ndarray:
    return floats_of(tensor) + arena.offsets[tensor.storage.number]


def general_places(arena: Arena, operand: Operand) -> np.ndarray:
    """Return the floats of the arena that a general operand of floats reaches."""
    assert operand.element is Element.FLOAT
    steps = (np.arange(size) * stride for size, stride in zip(operand.sizes, operand.strides, strict=True))
    grid = np.zeros((), np.int64)
    for along in steps:
        grid = grid[..., None] + along
    return grid.ravel() + operand.offset + arena.offsets[operand.storage.number]


@settings(deadline=None, max_examples=60)
@given(graph=graphs(), tier=st.sampled_from(TIERS))
def test_views_stay_in_their_storage_and_outputs_off_their_operands(graph, tier):
    program = lower(graph, tier, 3)
    arena = lay_out(program)
    for step in program.steps:
        for tensor in step.tensors():
            if isinstance(tensor, Tensor):
                reached = floats_of(tensor)
                assert reached.min() >= 0
                assert reached.max() < tensor.storage.floats
        if step.out is not None and step.out.storage.space is Space.ARENA:
            written = set(places(arena, step.out).tolist())
            for operand in (step.x, step.y):
                if operand is not None and operand.storage.space is Space.ARENA:
                    assert written.isdisjoint(places(arena, operand).tolist()), step.label


@settings(deadline=None, max_examples=30)
@given(graph=graphs(), tier=st.sampled_from(TIERS))
def test_the_algorithms_and_layouts_do_not_depend_on_the_threads(graph, tier):
    def picture(threads: int) -> list[tuple[object, ...]]:
        return [
            (step.family, step.label, *(tensor and tensor.layout for tensor in (step.x, step.out)))
            for step in lower(graph, tier, threads).steps
        ]

    assert picture(1) == picture(2) == picture(7)


def line(step: Step) -> str:
    """One step as text: kernel, node, and for x and out blocks x rows x columns @ channels of a block, halo.

    Of general operands, the result first, their sizes.
    """

    def view(tensor: Tensor) -> str:
        layout = tensor.layout
        sizes = f"{layout.n}x{layout.blocks}x{layout.h}x{layout.w}@{layout.pixel}"
        halo = layout.halo
        sides = (halo.top, halo.left, halo.bottom, halo.right)
        return sizes + (f"+{''.join(map(str, sides))}" if any(sides) else "") + f" {tensor.storage.space.value.lower()}"

    if step.x is None or step.out is None:
        out, *operands = ("x".join(map(str, operand.sizes)) for operand in step.operands)
        return f"{step.family} {step.label}: {', '.join(operands)} -> {out}"
    return f"{step.family} {step.label}: {view(step.x)} -> {view(step.out)}"


def dump(program: Program) -> list[str]:
    return [line(step) for step in program.steps]


def residual_block() -> GraphMaker:
    maker = GraphMaker()
    x = maker.input("x", 1, 3, 9, 9)
    x = maker.conv(x, np.ones((16, 3, 3, 3)), strides=(2, 2), pads=(1, 1, 1, 1), clamp=(0.0, np.inf))
    y = maker.conv(x, np.ones((16, 1, 3, 3)), pads=(1, 1, 1, 1), group=16)
    y = maker.conv(y, np.ones((16, 16, 1, 1)), residual=x)
    y = maker.node("GlobalAveragePool", (y,), (1, 16, 1, 1))
    y = maker.node("Reshape", (y,), (1, 16))
    y = maker.node("FusedGemm", (y, maker.constant(np.ones((5, 16))), ""), (1, 5), clamp=NO_CLAMP)
    maker.node("Softmax", (y,), (1, 5), axis=1)
    return maker


@pytest.mark.parametrize(
    ("tier", "expected"),
    [
        pytest.param(
            AVX512,
            [
                "reorder_to_blocks x interleaved: 1x3x9x9@1 input -> 1x1x9x9@3+1111 arena",
                "conv_direct n0: 1x1x9x9@3+1111 arena -> 1x1x5x5@16+1111 arena",
                "conv_depthwise n1: 1x1x5x5@16+1111 arena -> 1x1x5x5@16 arena",
                "conv_direct n2: 1x1x5x5@16 arena -> 1x1x5x5@16 arena",
                "pool_global_average n3: 1x1x5x5@16 arena -> 1x1x1x1@16 arena",
                "gemv n5: 1x1x1x1@16 arena -> 1x1x1x1@16 arena",
                "softmax_rows_f32 n6: 1x5 -> 1x5",
                "copy t6 out: 1x1x1x5@1 arena -> 1x1x1x5@1 output",
            ],
            id="avx512",
        ),
        pytest.param(
            SSE4,
            [
                "reorder_to_blocks x to blocks: 1x3x9x9@1 input -> 1x1x9x9@4+1111 arena",
                "conv_direct n0: 1x1x9x9@4+1111 arena -> 1x4x5x5@4+1111 arena",
                "conv_depthwise n1: 1x4x5x5@4+1111 arena -> 1x4x5x5@4 arena",
                "conv_direct n2: 1x4x5x5@4 arena -> 1x4x5x5@4 arena",
                "pool_global_average n3: 1x4x5x5@4 arena -> 1x4x1x1@4 arena",
                "gemv n5: 1x1x1x1@16 arena -> 1x2x1x1@16 arena",
                "softmax_rows_f32 n6: 1x5 -> 1x5",
                "copy t6 out: 1x1x1x5@1 arena -> 1x1x1x5@1 output",
            ],
            id="sse4",
        ),
    ],
)
def test_a_residual_block_becomes(tier, expected):
    maker = residual_block()
    program = lower(maker.graph("t6"), tier, 1)
    assert dump(program) == expected


def test_a_concat_with_a_constant_copies_it_from_a_hidden_input():
    maker = GraphMaker()
    x = maker.input("x", 2, 3, 4, 4)
    constant = maker.constant(np.arange(64, dtype=np.float32).reshape(2, 2, 4, 4))
    y = maker.node("Concat", (x, constant), (2, 5, 4, 4), axis=1)
    program = lower(maker.graph(y), AVX2, 1)
    assert [values.shape for values in program.hidden_inputs] == [(2, 2, 4, 4)]
    sources = {step.x.storage.index for step in program.steps if step.x.storage.space is Space.INPUT}
    assert sources == {0, 1}
    assert {step.family for step in program.steps} == {"copy"}
