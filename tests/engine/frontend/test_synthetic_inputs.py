"""Made inputs: floats as before, integers that every table has, masks that leave nothing out."""

from __future__ import annotations

import numpy as np

from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs

SHAPES = {"x": (2, 3), "ids": (4, 50), "attention_mask": (4, 50), "on": (3,)}
DTYPES = {name: np.dtype(kind) for name, kind in zip(SHAPES, ("float32", "int64", "int32", "bool"), strict=True)}


def test_each_input_has_its_shape_and_type():
    made = synthetic_inputs(SHAPES, 1, DTYPES)
    assert {name: value.shape for name, value in made.items()} == SHAPES
    assert {name: value.dtype for name, value in made.items()} == DTYPES


def test_whole_numbers_are_rows_of_any_table_and_masks_leave_nothing_out():
    made = synthetic_inputs(SHAPES, 1, DTYPES)
    assert set(made["ids"].reshape(-1).tolist()) == {0, 1}
    assert made["attention_mask"].all()
    assert made["on"].all()


def test_the_seed_alone_decides():
    first, again, other = (synthetic_inputs(SHAPES, seed, DTYPES) for seed in (1, 1, 2))
    assert all((first[name] == again[name]).all() for name in SHAPES)
    assert (first["x"] != other["x"]).any()


def test_without_types_all_are_normal_numbers():
    made = synthetic_inputs({"x": (100, 100)}, 3)["x"]
    assert made.dtype == np.float32
    assert abs(made.mean()) < 0.05
    assert abs(made.std() - 1) < 0.05
