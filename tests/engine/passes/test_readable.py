"""What the native core reads lies one behind the other, at addresses that its types may have."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes
from general_models import node_bytes

from powerlab.engine import Session
from powerlab.engine.passes import optimise
from powerlab.engine.program.operand import as_floats, readable


def at_an_odd_address(values):
    """Return an equal array that begins where no number may."""
    room = np.zeros(values.nbytes + 1, np.uint8)
    odd = room[1:].view(values.dtype).reshape(values.shape)
    odd[...] = values
    assert not odd.flags.aligned
    return odd


@pytest.mark.parametrize(
    "values",
    [np.arange(6, dtype=np.float32), np.arange(6, dtype=np.float32).reshape(2, 3).T, np.arange(6), np.float32(3)],
    ids=["row", "turned", "whole", "one"],
)
def test_values_are_the_same_and_lie_well(values):
    found = readable(values)
    assert found.flags.aligned
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found.reshape(np.shape(values)), values)


def test_values_at_odd_addresses_are_copied_and_others_are_not():
    odd, even = at_an_odd_address(np.arange(6, dtype=np.float32)), np.arange(6, dtype=np.float32)
    assert readable(odd).flags.aligned
    np.testing.assert_array_equal(readable(odd), even)
    assert np.shares_memory(readable(even), even)


def test_whole_numbers_at_odd_addresses():
    found = as_floats(at_an_odd_address(np.arange(5)))
    assert found.flags.aligned
    np.testing.assert_array_equal(found.view(np.int64), np.arange(5))


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_a_caller_may_hand_in_any_array(dtype):
    x = np.arange(12).astype(dtype).reshape(3, 4)
    session = Session(optimise(load_bytes(node_bytes("Add", {"x": x, "z": x}))), threads=2)
    np.testing.assert_array_equal(session.run({"x": at_an_odd_address(x), "z": x[::1]})["y"], x + x)
