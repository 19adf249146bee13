"""The rule that makes an interval of a budget's lines, and the shares it has."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.budget import (
    INVERTED,
    MAY_BE_NEGATIVE,
    TOGETHER,
    combined,
    half_width,
    interval,
    of_metric,
    shares,
)
from powerlab.domain.quantity import METRICS
from powerlab.domain.run import Contribution, EffectKind
from powerlab.domain.statistics import NORMAL_95

ORIGINS = ("ina3221:CPU", "ina3221:GPU", "rapl:package-0", "idle", "repeats")
EFFECTS = ("gain", "edge", "lag", "offset", "sampling", "idle gain", "idle edge", "drift", "scatter")
SIZES = st.just(0.0) | st.floats(1e-12, 1e6)


def line(uncertainty: float, origin: str = "ina3221:CPU", effect: str = "offset", metric: str = "power_w"):
    return Contribution(
        metric=metric, origin=origin, effect=effect, kind=EffectKind.B, standard_uncertainty=uncertainty
    )


LINES = st.lists(st.builds(line, SIZES, st.sampled_from(ORIGINS), st.sampled_from(EFFECTS)), max_size=20)


def test_independent_lines_combine_as_the_root_of_the_sum_of_squares():
    assert combined([line(3.0), line(4.0, origin="ina3221:GPU")]) == pytest.approx(5.0)
    assert combined([line(3.0), line(4.0, effect="gap")]) == pytest.approx(5.0)


@pytest.mark.parametrize("effect", sorted(TOGETHER))
def test_what_the_rails_of_a_source_share_is_added_within_it_and_squared_across(effect):
    one, two, other = (
        line(3.0, effect=effect),
        line(4.0, "ina3221:GPU", effect),
        line(24.0, "rapl:package-0", effect),
    )
    assert combined([one, two]) == pytest.approx(7.0)
    assert combined([one, two, other]) == pytest.approx(25.0)


def test_the_idle_baselines_edges_are_others_than_the_runs():
    edges = [line(3.0, effect="edge"), line(4.0, effect="idle edge")]
    assert combined(edges) == pytest.approx(5.0)
    assert combined([*edges, line(8.0, "ina3221:GPU", "idle edge")]) == pytest.approx(math.hypot(3, 12))


def test_no_lines_are_no_uncertainty():
    assert combined([]) == 0
    assert shares([], "power_w") == ()


@given(lines=LINES, seed=st.integers(0, 99))
def test_the_order_of_the_lines_does_not_matter(lines, seed):
    mixed = random.Random(seed).sample(lines, len(lines))
    assert combined(mixed) == pytest.approx(combined(lines))


@given(lines=LINES, more=st.builds(line, SIZES, st.sampled_from(ORIGINS), st.sampled_from(EFFECTS)))
def test_the_whole_lies_between_its_largest_line_and_the_sum_and_grows_with_every_line(lines, more):
    sizes = [one.standard_uncertainty for one in lines]
    whole = combined(lines)
    assert whole <= math.fsum(sizes) * (1 + 1e-12)
    assert whole >= max(sizes, default=0.0) * (1 - 1e-12)
    assert combined([*lines, more]) >= whole * (1 - 1e-12)


@given(lines=LINES, factor=st.floats(1e-3, 1e3))
def test_a_figure_in_another_unit_has_the_same_shares(lines, factor):
    other = [line(one.standard_uncertainty * factor, one.origin, one.effect, "energy_per_image_j") for one in lines]
    assert combined(other) == pytest.approx(combined(lines) * factor)
    here, there = shares(lines, "power_w"), shares(other, "energy_per_image_j")
    assert sorted(one.percent for one in here) == pytest.approx(sorted(one.percent for one in there), abs=1e-6)


@given(lines=LINES)
def test_shares_are_no_less_than_0_add_up_to_100_and_come_sorted(lines):
    found = [share.percent for share in shares(lines, "power_w")]
    if not combined(lines):
        assert found == []
        return
    assert math.fsum(found) == pytest.approx(100)
    assert min(found) >= 0
    assert found == sorted(found, reverse=True)


def test_an_added_line_has_its_part_of_what_is_common():
    found = shares([line(3.0, effect="gain"), line(1.0, "ina3221:GPU", "gain"), line(3.0)], "power_w")
    assert {(one.line.origin, one.line.effect): one.percent for one in found} == pytest.approx(
        {("ina3221:CPU", "gain"): 48, ("ina3221:GPU", "gain"): 16, ("ina3221:CPU", "offset"): 36}
    )


def test_uncertainties_whose_squares_are_no_floats_have_shares_all_the_same():
    tiny = [line(1e-200), line(1e-200, "ina3221:GPU")]
    assert [share.percent for share in shares(tiny, "power_w")] == pytest.approx([50, 50])


def test_every_figure_has_its_own_lines():
    lines = [line(1.0), line(2.0, metric="idle_power_w"), line(3.0)]
    assert of_metric(lines, "power_w") == [lines[0], lines[2]]
    assert [share.line for share in shares(lines, "idle_power_w")] == [lines[1]]


@given(value=st.floats(1e-6, 1e6), relative=st.floats(0, 0.9))
def test_an_interval_is_as_wide_to_either_side(value, relative):
    low, high = interval("energy_above_idle_per_image_j", value, relative * value)
    assert high - value == pytest.approx(relative * value, abs=1e-9 * value)
    assert value - low == pytest.approx(relative * value, abs=1e-9 * value)


@given(lines=LINES)
def test_its_half_width_is_that_of_a_rectangle_of_a_normal_distribution_or_of_both(lines):
    normal = NORMAL_95 * combined(lines)
    assert 0.99 * 0.95 * math.sqrt(3) / NORMAL_95 * normal <= half_width(lines) <= 1.01 * normal


@given(value=st.floats(1e-6, 1e6), relative=st.floats(0, 3))
def test_only_a_difference_may_be_negative(value, relative):
    low, _ = interval("power_w", value, relative * value)
    assert low >= 0
    below, _ = interval("energy_above_idle_per_image_j", value, relative * value)
    assert (below < 0) == (value < relative * value)


@given(joules=st.floats(1e-3, 1e5), relative=st.floats(0, 2))
def test_the_interval_of_an_inverse_is_the_interval_turned_over(joules, relative):
    low_j, high_j = interval("energy_per_image_j", joules, relative * joules)
    low, high = interval("efficiency_img_per_s_per_w", 1 / joules, relative * joules / joules**2)
    if low_j > 1e-9 * joules:
        assert (low, high) == (pytest.approx(1 / high_j), pytest.approx(1 / low_j))
    elif relative > 1:
        assert (low, high) == (None, None)


def test_the_rules_exceptions_are_figures_there_are():
    assert set(METRICS) >= MAY_BE_NEGATIVE | INVERTED
