"""How exact outputs are: the ratio, the interval over the images, and the first choice."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from powerlab.domain.accuracy import HIGHEST_SQNR_DB
from powerlab.domain.quantity import Provenance
from powerlab.measure.output_accuracy import accuracy_metrics, accuracy_of, outputs_sqnr_db, wilson_95

SIGNALS = arrays(np.float32, (7,), elements=st.floats(-100, 100, width=32)).filter(
    lambda value: np.abs(value).max() > 1
)


@given(SIGNALS, st.sampled_from([0.5, 0.25, 2**-6]))
def test_a_relative_error_is_its_ratio_in_decibels(values, share):
    assert outputs_sqnr_db(values, values * (1 + share)) == pytest.approx(-20 * math.log10(share), abs=0.01)


@given(SIGNALS, st.floats(2**-10, 2**10, width=32))
def test_the_ratio_does_not_depend_on_the_scale(values, scale):
    noisy = values + np.float32(0.5)
    scaled = outputs_sqnr_db(values * np.float64(scale), noisy * np.float64(scale))
    assert scaled == pytest.approx(outputs_sqnr_db(values, noisy), abs=0.01)


def test_the_ends_are_finite():
    ones, zeros = np.ones(3, np.float32), np.zeros(3, np.float32)
    assert outputs_sqnr_db(ones, ones) == HIGHEST_SQNR_DB
    assert outputs_sqnr_db(zeros, ones) == outputs_sqnr_db(ones, np.full(3, np.nan, np.float32)) == -HIGHEST_SQNR_DB
    assert 140 < HIGHEST_SQNR_DB < 145


def batches(random, share, count=8, size=4):
    """Return outputs of 10 classes and the same with noise of a share of them."""
    right = [{"y": random.standard_normal((size, 10)).astype(np.float32)} for _ in range(count)]
    noise = [share * random.standard_normal((size, 10)) for _ in range(count)]
    return right, [{"y": (one["y"] + more).astype(np.float32)} for one, more in zip(right, noise, strict=True)]


def test_the_intervals_hold_the_truth():
    """Noise of a tenth is 20 dB; the interval of the mean over 32 images holds that about 19 times of 20."""
    random = np.random.default_rng(5)
    held = 0
    for _ in range(200):
        right, found = batches(random, 0.1)
        truth = np.mean(
            [np.mean(outputs_sqnr_db(a["y"], b["y"])) for a, b in zip(*batches(random, 0.1, 200), strict=True)]
        )
        figure = next(accuracy_metrics(accuracy_of(right, found, 4, 20.0), Provenance.MEASURED))
        assert figure.value == pytest.approx(20, abs=2)
        held += figure.low <= truth + 0.5 and truth - 0.5 <= figure.high
    assert held >= 180


def test_the_first_choice_is_compared_image_by_image():
    right = [{"y": np.eye(4, 10, dtype=np.float32)}]
    found = [{"y": np.roll(right[0]["y"], 1, axis=1)}]
    found[0]["y"][0] = right[0]["y"][0]
    accuracy = accuracy_of(right, found, 4, 20.0)
    assert (accuracy.images, accuracy.agreeing) == (4, 1)
    sqnr, agreement = accuracy_metrics(accuracy, Provenance.MEASURED)
    assert agreement.value == 25.0
    assert 0 < agreement.low < 25.0 < agreement.high < 100
    assert sqnr.value < 50


def test_outputs_that_are_no_classes_have_no_first_choice():
    boxes = [{"boxes": np.ones((2, 5, 4), np.float32), "grid": np.ones((2, 1), np.float32)}]
    accuracy = accuracy_of(boxes, boxes, 2, 20.0)
    assert accuracy.agreeing is None
    assert [one.name for one in accuracy_metrics(accuracy, Provenance.MEASURED)] == ["output_sqnr_db"]


def test_of_several_outputs_the_worst_counts_and_a_single_image_has_no_interval():
    right = [{"a": np.ones((1, 4), np.float32), "b": np.ones((1, 4), np.float32)}]
    found = [{"a": right[0]["a"], "b": np.full((1, 4), 1.1, np.float32)}]
    accuracy = accuracy_of(right, found, 1, 20.0)
    assert accuracy.sqnr_db == pytest.approx(20, abs=0.01)
    assert accuracy.sqnr_half_width_db is None


def test_outputs_without_a_batch_are_compared_as_a_whole():
    rows = [{"y": np.arange(6, dtype=np.float32)}] * 2
    accuracy = accuracy_of(rows, rows, 2, 20.0)
    assert (accuracy.images, accuracy.sqnr_db) == (2, HIGHEST_SQNR_DB)


@given(st.integers(1, 500).flatmap(lambda count: st.tuples(st.integers(0, count), st.just(count))))
def test_wilsons_interval_holds_the_share_and_stays_a_share(pair):
    hits, count = pair
    low, high = wilson_95(hits, count)
    assert 0 <= low <= hits / count <= high <= 1


def test_wilsons_interval_is_the_published_one():
    """Newcombe (1998), table I: 81 of 263 is 0.2553 to 0.3662; 0 of 20 is 0 to 0.1611."""
    assert wilson_95(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson_95(0, 20) == pytest.approx((0, 0.1611), abs=5e-5)
