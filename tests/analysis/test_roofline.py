"""Layers under a roof whose corners are known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layer_profiles import figure, layer_profile
from powerlab.analysis.roofline import Bound, ridge_flop_per_byte, roofline
from powerlab.domain.layers import Roof
from powerlab.domain.quantity import Provenance

ROOF = Roof(peak_gflops=200.0, memory_gb_per_s=20.0)


def point(flops: int, bytes_moved: int, time_ms: float, roof: Roof | None = ROOF):
    layer = replace(
        layer_profile().layers[1],
        index=0,
        flops=flops,
        bytes_moved=bytes_moved,
        time=figure("layer_time_ms", time_ms, Provenance.MEASURED),
    )
    (found,) = roofline(replace(layer_profile(roof=roof), layers=(layer,)))
    return found


def test_the_two_roofs_meet_where_both_allow_the_same():
    assert ridge_flop_per_byte(ROOF) == 10


def test_a_layer_that_multiplies_much_stands_below_the_processors_roof():
    found = point(100_000_000, 1_000_000, 1.0)
    assert (found.flop_per_byte, found.gflops, found.gb_per_s) == (100, pytest.approx(100), pytest.approx(1))
    assert found.bound is Bound.COMPUTE
    assert found.percent_of_roof == pytest.approx(50)


def test_a_layer_that_multiplies_little_stands_below_the_memorys_roof():
    found = point(10_000_000, 10_000_000, 1.0)
    assert found.bound is Bound.MEMORY
    assert found.percent_of_roof == pytest.approx(50)


def test_what_only_moves_numbers_is_measured_by_its_bytes():
    found = point(0, 10_000_000, 2.0)
    assert (found.gflops, found.bound) == (0, Bound.MEMORY)
    assert found.percent_of_roof == pytest.approx(25)


def test_without_a_roof_nothing_is_said_of_one():
    found = point(100, 100, 1.0, roof=None)
    assert found.bound is found.percent_of_roof is None
    assert found.gflops > 0


def test_layers_keep_their_order():
    assert [one.index for one in roofline(layer_profile(roof=ROOF))] == [0, 1, 2, 3]


@given(st.integers(0, 10**12), st.integers(1, 10**10), st.floats(1e-3, 1e4), st.floats(1, 1e4), st.floats(1, 1e3))
def test_a_layer_at_its_roof_is_at_100_percent_whichever_roof_it_is(flops, bytes_moved, time_ms, peak, memory):
    found = point(flops, bytes_moved, time_ms, Roof(peak_gflops=peak, memory_gb_per_s=memory))
    allowed = min(peak, found.flop_per_byte * memory)
    if flops:
        assert found.percent_of_roof == pytest.approx(100 * found.gflops / allowed)
    assert found.percent_of_roof >= 0
