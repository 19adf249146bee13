"""What lowering decides: which kernels, which layouts, and no step that could be left out."""

import numpy as np
import pytest

from engine_native.graphs import NO_CLAMP, GraphMaker
from powerlab.engine.codegen import LOWERINGS, lower
from powerlab.engine.passes import LOWERED
from powerlab.engine.program.layout import NO_HALO, Halo
from powerlab.engine.program.program import Program, Step
from powerlab.engine.program.storage import Space
from powerlab.engine.runtime.arena import lay_out
from powerlab.engine.target.tiers import Tier

AVX2 = Tier("avx2", 8, 2, 6)
AVX512 = Tier("avx512", 16, 4, 6)
SAME = {"pads": (1, 1, 1, 1)}


def weights(outputs: int, inputs: int, kernel: int = 1) -> np.ndarray:
    return np.ones((outputs, inputs, kernel, kernel), np.float32)


def families(program: Program) -> list[str]:
    return [step.family for step in program.steps]


def step_of(program: Program, family: str) -> Step:
    (step,) = [step for step in program.steps if step.family == family]
    return step


def bottleneck(maker: GraphMaker, size: int = 8) -> str:
    x = maker.input("x", 1, 64, size, size)
    y = maker.conv(x, weights(16, 64), clamp=(0.0, np.inf))
    y = maker.conv(y, weights(16, 16, 3), **SAME, clamp=(0.0, np.inf))
    return maker.conv(y, weights(64, 16), residual=x, clamp=(0.0, np.inf))


@pytest.mark.parametrize("tier", [AVX2, AVX512], ids=lambda tier: tier.name)
def test_layouts_change_only_at_the_ends(maker, tier):
    program = lower(maker.graph(bottleneck(maker)), tier, 2)
    assert families(program)[0] == "reorder_to_blocks"
    assert families(program)[-1] == "reorder_to_planes"
    assert all(family.startswith("conv_") for family in families(program)[1:-1])
    assert len(program.steps) == 5


def test_the_residual_is_the_same_memory_as_the_input(maker):
    program = lower(maker.graph(bottleneck(maker)), AVX512, 2)
    last = program.steps[-2]
    assert last.y is not None
    assert last.y.storage == program.steps[0].out.storage


def test_only_tensors_read_with_padding_get_a_halo(maker):
    x = maker.input("x", 1, 8, 10, 10)
    y = maker.conv(x, weights(8, 8), clamp=NO_CLAMP)
    z = maker.conv(y, weights(8, 8, 5), pads=(2, 1, 0, 2), clamp=NO_CLAMP)
    program = lower(maker.graph(z), AVX512, 1)
    first, second = (step for step in program.steps if step.family == "conv_direct")
    assert first.x.layout.halo == NO_HALO
    assert first.out.layout.halo == Halo(2, 1, 0, 2)
    assert second.out.layout.halo == NO_HALO


def test_two_readers_share_the_larger_halo(maker):
    x = maker.input("x", 1, 16, 12, 12)
    y = maker.conv(x, weights(8, 16, 3), **SAME, strides=(2, 2))
    z = maker.conv(x, weights(8, 16, 5), pads=(2, 2, 2, 2))
    program = lower(maker.graph(y, z), AVX512, 1)
    assert families(program).count("reorder_to_blocks") == 1
    assert program.steps[0].out.layout.halo == Halo(2, 2, 2, 2)


def test_an_image_of_three_channels_stays_interleaved(maker):
    y = maker.conv(maker.input("x", 1, 3, 20, 20), weights(16, 3, 7), strides=(2, 2), pads=(3, 3, 3, 3))
    program = lower(maker.graph(y), AVX512, 1)
    conv = step_of(program, "conv_direct")
    assert conv.x.layout.pixel == 3
    assert (conv.settings["kernel_w"], conv.settings["lanes"]) == (1, 21)


def test_pointwise_convolutions_see_one_row_of_all_pixels(maker):
    y = maker.conv(maker.input("x", 2, 32, 7, 7), weights(16, 32))
    conv = step_of(lower(maker.graph(y), AVX512, 1), "conv_direct")
    assert (conv.out.layout.n, conv.out.layout.h, conv.out.layout.w) == (2, 1, 49)


@pytest.mark.parametrize(
    ("channels", "size", "family"), [(64, 56, "conv_winograd6"), (512, 7, "conv_winograd2"), (512, 2, "conv_direct")]
)
def test_the_algorithm_follows_the_size(maker, channels, size, family):
    y = maker.conv(maker.input("x", 1, channels, size, size), weights(channels, channels, 3), **SAME)
    assert family in families(lower(maker.graph(y), AVX512, 2))


@pytest.mark.parametrize("options", [{"strides": (2, 2)}, {"dilations": (16, 16)}, {"group": 32}])
def test_winograd_is_for_plain_convolutions_only(maker, options):
    group = options.get("group", 1)
    y = maker.conv(maker.input("x", 1, 64, 56, 56), weights(64, 64 // group, 3), **SAME, **options)
    assert "conv_direct" in families(lower(maker.graph(y), AVX512, 2))


def test_depthwise_convolutions_have_their_own_kernel(maker):
    y = maker.conv(maker.input("x", 1, 40, 9, 9), weights(40, 1, 3), **SAME, group=40)
    step = step_of(lower(maker.graph(y), AVX512, 2), "conv_depthwise")
    assert step.weights is not None
    assert step.weights.size == 48 * 9


@pytest.mark.parametrize(
    ("groups", "strides", "family"), [(8, 1, "conv_grouped"), (16, 2, "conv_grouped"), (32, 1, "conv_direct")]
)
def test_groups_of_a_few_channels_have_their_own_kernel(maker, groups, strides, family):
    y = maker.input("x", 1, 64, 28, 28)
    y = maker.conv(y, weights(64, 64 // groups, 3), **SAME, group=groups, strides=(strides, strides))
    assert family in families(lower(maker.graph(y), AVX512, 2))


@pytest.mark.parametrize(("groups", "expected"), [(2, 2), (4, 4), (8, 4), (64, 4)])
def test_groups_are_merged_until_they_fill_blocks(maker, groups, expected):
    y = maker.conv(maker.input("x", 1, 64, 5, 5), weights(128, 64 // groups, 3), group=groups)
    conv = step_of(lower(maker.graph(y), AVX512, 1), "conv_direct")
    assert conv.settings["groups"] == expected


def test_flattening_an_averaged_image_costs_nothing(maker):
    x = maker.input("x", 1, 32, 6, 6)
    y = maker.node("GlobalAveragePool", (x,), (1, 32, 1, 1))
    y = maker.node("Reshape", (y,), (1, 32))
    y = maker.node("FusedGemm", (y, maker.constant(np.ones((10, 32))), ""), (1, 10), clamp=NO_CLAMP)
    program = lower(maker.graph(y), AVX512, 1)
    assert families(program) == ["reorder_to_blocks", "pool_global_average", "gemv", "copy"]


def test_scratch_lives_for_its_step_only(maker):
    x = maker.input("x", 1, 64, 28, 28)
    for _ in range(4):
        x = maker.conv(x, weights(64, 64, 3), **SAME)
    program = lower(maker.graph(x), AVX512, 2)
    scratches = {step.scratch.storage.number for step in program.steps if step.scratch is not None}
    offsets = lay_out(program).offsets
    assert len(scratches) == 4
    assert len({offsets[number] for number in scratches}) == 1


def test_constants_read_as_tensors_become_hidden_inputs(maker):
    y = maker.node("Add", (maker.input("x", 1, 4), maker.constant(np.ones((1, 4)))), (1, 4), clamp=NO_CLAMP)
    program = lower(maker.graph(y), AVX2, 1)
    assert [values.tolist() for values in program.hidden_inputs] == [[[1, 1, 1, 1]]]
    assert {step.x.storage.index for step in program.steps if step.x.storage.space is Space.INPUT} == {0, 1}


def test_every_operator_of_the_contract_is_there():
    assert set(LOWERINGS) == LOWERED
