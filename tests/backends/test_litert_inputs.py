"""LiteRT gets its pictures in the order it reads them, so that handing them over is one plain copy."""

from __future__ import annotations

import numpy as np
import pytest
from backend_answers import loaded

from powerlab.backends.litert import _channels_last_in_memory
from powerlab.backends.packages import installed_version
from requires import missing


@pytest.mark.parametrize("shape", [(1, 3, 5, 7), (2, 4, 3, 3), (1, 1, 2, 2), (8, 16, 1, 1)])
def test_pictures_keep_shape_and_numbers_and_lie_channels_last(shape):
    values = np.random.default_rng(5).standard_normal(shape, dtype=np.float32)
    laid_out = _channels_last_in_memory(values)
    assert laid_out.shape == shape
    np.testing.assert_array_equal(laid_out, values)
    assert np.moveaxis(laid_out, 1, -1).flags.c_contiguous


@pytest.mark.parametrize("shape", [(3,), (2, 9), (2, 3, 4)])
def test_what_is_no_picture_stays_as_it_is(shape):
    values = np.ones(shape, np.float32)
    assert _channels_last_in_memory(values) is values


def test_the_answer_does_not_depend_on_how_inputs_lie():
    if installed_version("litert") is None:
        missing("litert is not installed (pip install 'powerlab[peers]')")
    backend = loaded("litert", "squeezenet@64")
    inputs = backend.inputs(3)
    plain = {name: np.ascontiguousarray(values) for name, values in inputs.items()}
    (first,), (second,) = backend.run(inputs).values(), backend.run(plain).values()
    np.testing.assert_array_equal(first, second)
