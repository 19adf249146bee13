"""The factor between a standard uncertainty and its 95 % interval, against distributions drawn by numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.budget import half_width
from powerlab.domain.coverage import half_width_95
from powerlab.domain.run import Contribution, EffectKind
from powerlab.domain.statistics import NORMAL_95

SQRT3 = math.sqrt(3)


def line(effect, uncertainty, origin="ina3221:VDD_IN"):
    return Contribution(
        metric="power_w", origin=origin, effect=effect, kind=EffectKind.B, standard_uncertainty=uncertainty
    )


def test_without_a_rectangle_it_is_the_normal_distributions():
    assert half_width_95(2.0, 0.0) == pytest.approx(2 * NORMAL_95)
    assert half_width_95(0.0, 0.0) == 0


def test_of_a_single_rectangle_95_percent_of_its_half_width_are_enough():
    assert half_width_95(1 / SQRT3, 1 / SQRT3) == pytest.approx(0.95)


@pytest.mark.parametrize("rectangles", [(1,), (1, 1), (1, 0.5), (1, 1, 1), (1, 0.8, 0.3)])
@pytest.mark.parametrize("deviation", [0.0, 1e-9, 0.05, 0.3, 1.0, 5.0])
def test_it_holds_95_percent_of_rectangles_and_a_normal_part(rectangles, deviation):
    rng = np.random.default_rng(1)
    drawn = sum(rng.uniform(-half, half, 200_000) for half in rectangles) + rng.normal(0, deviation, 200_000)
    together = math.hypot(deviation, *(half / SQRT3 for half in rectangles))
    inside = float(np.mean(np.abs(drawn) <= half_width_95(together, max(rectangles) / SQRT3)))
    assert 0.944 <= inside <= 0.956


@given(rectangle=st.floats(1e-9, 1e9), rest=st.floats(0, 1e9))
def test_more_uncertainty_never_gives_a_narrower_interval_and_never_a_wider_one_than_the_normals(rectangle, rest):
    together = math.hypot(rectangle, rest)
    found = half_width_95(together, rectangle)
    assert 0.95 * SQRT3 * rectangle * (1 - 1e-9) <= found <= NORMAL_95 * together * (1 + 1e-9)
    assert half_width_95(math.hypot(together, rest), rectangle) >= found * (1 - 1e-6)


@given(rectangle=st.floats(0.01, 100), rest=st.floats(0, 100), factor=st.floats(1e-6, 1e6))
def test_the_unit_does_not_matter(rectangle, rest, factor):
    together = math.hypot(rectangle, rest)
    assert half_width_95(together * factor, rectangle * factor) == pytest.approx(
        factor * half_width_95(together, rectangle), rel=1e-6
    )


def test_gains_of_one_source_are_one_rectangle_and_of_two_sources_are_two():
    one = half_width([line("gain", 1.0), line("gain", 1.0, "ina3221:VDD_SOC")])
    two = half_width([line("gain", 1.0), line("gain", 1.0, "rapl:package-0")])
    assert one == pytest.approx(2 * 0.95 * SQRT3)
    assert two == pytest.approx(1.917 * math.sqrt(2), rel=1e-3)


def test_scatter_is_no_rectangle():
    assert half_width([line("sampling", 1.0)]) == pytest.approx(NORMAL_95)
    assert half_width([line("idle gain", 1.0)]) == pytest.approx(0.95 * SQRT3)
