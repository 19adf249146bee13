"""Ratios in words: what is printed can be read back, and says neither more nor less than the interval."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.analysis.comparison import Ratio
from powerlab.analysis.wording import lead_words, percent_words, ratio_words, verdict_words
from powerlab.domain.quantity import Provenance

_NUMBER = r"-?\d+(?:\.\d+)?"


@st.composite
def ratios(draw):
    low = draw(st.floats(0.01, 50))
    value = low * draw(st.floats(1, 3))
    high = value * draw(st.floats(1, 3))
    metric = draw(st.sampled_from(["latency_p50_ms", "throughput_img_per_s", "power_w"]))
    return Ratio(
        metric=metric,
        value=value,
        low=low,
        high=high,
        level=0.01,
        provenance=Provenance.MEASURED,
        repeat_count=3,
        paired=True,
    )


@given(ratios())
def test_a_ratio_is_read_back_to_the_digits_that_were_printed(ratio):
    numbers = [float(word) for word in re.findall(_NUMBER, ratio_words(ratio).replace("95 % CI", ""))]
    if len(numbers) == 1:  # an interval without width
        assert numbers[0] == pytest.approx(ratio.value, rel=0.01)
        return
    places = len(ratio_words(ratio).split(",")[0].partition(".")[2])
    assert numbers == pytest.approx([ratio.value, ratio.low, ratio.high], abs=0.51 * 10**-places)


@given(ratios())
def test_a_win_is_claimed_only_where_the_interval_excludes_one(ratio):
    said = lead_words(ratio, "latency", "1 thread")
    better = ratio.low > 1 if ratio.metric == "throughput_img_per_s" else ratio.high < 1
    assert said.startswith("winner: beats 1 thread by" if better else "tied with 1 thread (latency ratio")


@given(st.floats(1e-6, 0.5), st.floats(1e-6, 0.5), st.floats(1e-6, 0.5))
def test_an_interval_above_zero_is_not_printed_as_one_with_zero_in_it(low, below, above):
    said = percent_words(low + below, low, low + below + above)
    numbers = [float(word) for word in re.findall(_NUMBER, said)]
    assert "±" not in said or numbers[0] > numbers[1]
    assert "(" not in said or numbers[1] > 0
    assert percent_words(0.0503, 0.0004, 0.101) == "5.0 % (0.04 % to 10.1 %)"


@given(ratios(), st.booleans())
def test_a_verdict_names_the_better_one_and_a_percentage_above_zero(ratio, claimed):
    said = verdict_words(ratio, claimed=claimed)
    if not claimed:
        assert said == ("not significant among so many" if ratio.differs else "tied")
    elif ratio.differs:
        more_is_better = ratio.metric == "throughput_img_per_s"
        assert said.endswith("better" if (ratio.value > 1) == more_is_better else "worse")
        assert not said.startswith("-")


@given(st.floats(-50, 50), st.floats(1e-6, 10), st.floats(1e-6, 10))
def test_a_percentage_keeps_two_digits_of_its_wider_side(value, below, above):
    said = percent_words(value, value - below, value + above)
    found = [float(word) for word in re.findall(_NUMBER, said)]
    assert len(found) in {2, 3}
    assert found[0] == pytest.approx(100 * value, abs=100 * max(below, above) / 10)
    if len(found) == 2:
        assert found[1] == pytest.approx(100 * max(below, above), rel=0.06)
    else:
        assert found[1] <= found[0] <= found[2]
