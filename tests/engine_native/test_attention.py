"""Attention in one step: found in a graph where nobody else reads the scores, and right for any sizes and masks."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes, run_ort
from general_models import check_by_ort, model_bytes
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from powerlab.engine import Session
from powerlab.engine.passes import optimise
from powerlab.engine.target.tiers import BF16, choose_tier
from requires import needs_instructions


def step(operator, inputs, outputs, **attributes):
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def sides(batch, rows, keys, inner, width):
    """Return queries, keys as rows, and values."""
    return {
        "q": normal(*batch, rows, inner),
        "k": normal(*batch, keys, inner, seed=1),
        "v": normal(*batch, keys, width, seed=2),
    }


def turned(rank):
    return step("Transpose", "k", "kt", perm=[*range(rank - 2), rank - 1, rank - 2])


def kernels(data):
    session = Session(optimise(load_bytes(data)), threads=1)
    return [kernel for kernel, _ in session.steps() if kernel.startswith(("attention", "softmax", "matmul"))]


def check(nodes, inputs, constants=None, *, together=True, outputs=("y",)):
    data = model_bytes(nodes, inputs, outputs, constants=constants or {})
    check_by_ort(data, inputs, rtol=1e-4, atol=1e-5)
    assert len(kernels(data)) == (1 if together else 3)
    assert kernels(data)[0].startswith("attention_f32_") == together


@given(
    batch=st.lists(st.integers(1, 3), max_size=2),
    rows=st.integers(13, 70),
    keys=st.integers(1, 150),
    inner=st.integers(1, 40),
    width=st.integers(1, 40),
)
def test_sizes(batch, rows, keys, inner, width):
    inputs = sides((2, *batch), rows, keys, inner, width)
    nodes = [
        turned(len(batch) + 3),
        step("MatMul", "q kt", "scores"),
        step("Softmax", "scores", "shares", axis=-1),
        step("MatMul", "shares v", "y"),
    ]
    check(nodes, inputs)


def test_more_keys_than_a_chunk_and_than_registers_hold():
    inputs = sides((2,), 50, 1300, 70, 20)
    nodes = [
        turned(3),
        step("MatMul", "q kt", "scores"),
        step("Softmax", "scores", "shares", axis=-1),
        step("MatMul", "shares v", "y"),
    ]
    check(nodes, inputs)


@pytest.mark.parametrize("shape", [(30, 21), (21,), (30, 1), (2, 1, 30, 21), (1, 3, 1, 21)], ids=str)
def test_what_is_added_is_repeated(shape):
    inputs = sides((2, 3), 30, 21, 8, 9)
    nodes = [
        turned(4),
        step("MatMul", "q kt", "m"),
        step("Add", "bias m", "scores"),
        step("Softmax", "scores", "shares", axis=-1),
        step("MatMul", "shares v", "y"),
    ]
    check(nodes, inputs, {"bias": normal(*shape, seed=3)})


def windows(images, *, order=None):
    """Return attention within the windows of an image, some of which are masked, as Swin has it."""
    nodes = [
        turned(4),
        step("MatMul", "q kt", "m"),
        step("Add", "m bias", "biased"),
        step("Reshape", "biased apart", "images"),
        step("Add", "images mask", "masked"),
        step("Reshape", "masked joined", "scores"),
        step("Softmax", "scores", "shares", axis=-1),
        step("MatMul", "shares v", "y" if order is None else "found"),
    ]
    constants = {
        "bias": normal(3, 16, 16, seed=4),
        "mask": np.where(normal(4, 1, 16, 16, seed=5) > 0, 0, -100).astype(np.float32),
        "apart": np.array([images, 4, 3, 16, 16]),
        "joined": np.array([images * 4, 3, 16, 16]),
    }
    return [*nodes, *([] if order is None else [step("Transpose", "found", "y", perm=order)])], constants


@pytest.mark.parametrize("images", [1, 2])
@pytest.mark.parametrize("order", [None, [0, 2, 1, 3], [0, 1, 3, 2]], ids=str)
def test_windows_of_an_image(images, order):
    nodes, constants = windows(images, order=order)
    check(nodes, sides((images * 4, 3), 16, 16, 8, 8), constants)


def with_a_blind_row(inputs):
    """Return attention of 20 rows on 30 keys, of which row 5 may see none and nobody key 7."""
    mask = np.zeros((20, 30), np.float32)
    mask[5] = mask[:, 7] = -np.inf
    nodes = [
        turned(4),
        step("MatMul", "q kt", "m"),
        step("Add", "m mask", "scores"),
        step("Softmax", "scores", "shares", axis=-1),
        step("IsNaN", "shares", "empty"),
        step("Where", "empty zero shares", "clean"),
        step("MatMul", "clean v", "y"),
    ]
    return nodes, inputs, {"mask": mask, "zero": np.zeros(1, np.float32)}


def test_a_row_that_may_see_nothing_becomes_zeros():
    inputs = sides((1, 2), 20, 30, 8, 8)
    check(*with_a_blind_row(inputs))


@pytest.mark.parametrize(
    ("nodes", "outputs"),
    [
        ([step("Softmax", "scores", "shares", axis=-1)], ("y", "shares")),
        ([step("Softmax", "scores", "shares", axis=-1)], ("y", "scores")),
        ([step("Softmax", "scores", "shares", axis=1)], ("y",)),
    ],
    ids=["shares are read", "scores are read", "other axis"],
)
def test_others_are_computed_node_by_node(nodes, outputs):
    inputs = sides((2,), 30, 21, 8, 9)
    nodes = [turned(3), step("MatMul", "q kt", "scores"), *nodes, step("MatMul", "shares v", "y")]
    check(nodes, inputs, together=False, outputs=outputs)


def test_work_counts_both_products_and_no_scores():
    inputs = sides((2,), 30, 21, 8, 9)
    nodes = [
        turned(3),
        step("MatMul", "q kt", "scores"),
        step("Softmax", "scores", "shares", axis=-1),
        step("MatMul", "shares v", "y"),
    ]
    data = model_bytes(nodes, inputs, ("y",), constants={})
    (work,) = (one for one in Session(optimise(load_bytes(data)), threads=1).work if one.operator == "Product")
    scores = 2 * 30 * 21
    assert work.flops == scores * (2 * 8 + 4 + 2 * 9)
    assert work.bytes_moved == 4 * sum(one.size for one in (*inputs.values(), normal(2, 30, 9)))


@needs_instructions(bool(choose_tier().pairs), "bfloat16")
@pytest.mark.parametrize("order", [None, [0, 2, 1, 3], [0, 1, 3, 2]], ids=str)
@pytest.mark.parametrize("inner", [8, 16, 40])
def test_in_bfloat16(inner, order, tmp_path):
    """By AMX in one step, but for small products, which are not rounded."""
    nodes, constants = windows(2, order=order)
    inputs = sides((8, 3), 16, 16, inner, 32)
    inputs["q"] *= 0.5
    data = model_bytes(nodes, inputs, constants=constants)
    path = tmp_path / "attention.onnx"
    path.write_bytes(data)
    session = Session(path, threads=2, precision=BF16)
    session.poison()
    found, exact = session.run(inputs)["y"], run_ort(data, inputs)["y"]
    assert np.abs(found - exact).max() < 0.06
    together = any(kernel.startswith("attention_bf16") for kernel, _ in session.steps())
    assert together == (inner >= 16 and choose_tier().pairs == "avx512amxbf16")


@needs_instructions(bool(choose_tier().pairs), "bfloat16")
def test_a_row_that_may_see_nothing_becomes_zeros_in_bfloat16(tmp_path):
    inputs = sides((1, 2), 20, 30, 16, 17)
    nodes, inputs, constants = with_a_blind_row(inputs)
    data = model_bytes(nodes, inputs, constants=constants)
    path = tmp_path / "attention.onnx"
    path.write_bytes(data)
    found, exact = Session(path, threads=2, precision=BF16).run(inputs)["y"], run_ort(data, inputs)["y"]
    assert not found[:, :, 5].any()
    assert np.abs(found - exact).max() < 0.06
