"""Bounds as people type them, and whether a figure keeps one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.analysis.operating_point.bounds import BOUND_KINDS, Bound, Fit, fit_of, parse_bounds
from powerlab.analysis.operating_point.question import parse_question
from powerlab.analysis.operating_point.settling import MOST_REPEATS, repeats_to_settle
from powerlab.analysis.summary import combine
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import METRICS, Metric, Provenance

SANE = st.floats(min_value=1e-3, max_value=1e6)


def figure(name: str, value: float, half: float | None = None) -> Metric:
    ends = (None, None) if half is None else (value - half, value + half)
    return Metric(name=name, value=value, low=ends[0], high=ends[1], provenance=Provenance.MEASURED)


@pytest.mark.parametrize(
    ("name", "text", "limit"),
    [
        ("p99", "30ms", 30),
        ("p99", "0.03s", 30),
        ("p99", " 30 MS ", 30),
        ("p99", "30", 30),
        ("p99", "30000µs", 30),
        ("power", "10W", 10),
        ("power", "10w", 10),
        ("power", "500mW", 0.5),
        ("throughput", "25", 25),
        ("throughput", "25/s", 25),
        ("throughput", "25 img/s", 25),
        ("throughput", "25fps", 25),
        ("throughput", "1500/min", 25),
        ("memory", "1GB", 1000),
        ("memory", "1gib", 1073.741824),
        ("memory", "512", 512),
        ("temperature", "70C", 70),
        ("temperature", "70 °C", 70),
        ("temperature", "7e1", 70),
    ],
)
def test_a_bound_may_be_typed_in_many_ways(name, text, limit):
    (bound,) = parse_bounds({name: text})
    assert bound == Bound(name=name, limit=pytest.approx(limit))


@pytest.mark.parametrize(
    "text", ["", "ms", "3x", "ten watts", "-5", "0", "1e999", "nan", "10 W W", "3,5ms", "10mw", "٣"]
)
def test_nonsense_is_one_sentence_that_shows_an_example_or_the_units(text):
    with pytest.raises(PowerlabError, match=r"^invalid power '.*'.*(10W|mW)[^\n]*\.$"):
        parse_bounds({"power": text})


@given(text=st.text(max_size=30), name=st.sampled_from(sorted(BOUND_KINDS)))
def test_any_text_is_a_limit_above_0_or_refused(text, name):
    try:
        (bound,) = parse_bounds({name: text})
    except PowerlabError:
        return
    assert 0 < bound.limit < float("inf")


@given(name=st.sampled_from(sorted(BOUND_KINDS)), limit=SANE, value=SANE, half=st.floats(min_value=0, max_value=1e5))
def test_a_bound_is_kept_only_with_the_whole_interval_and_missed_only_with_all_of_it(name, limit, value, half):
    bound = Bound(name=name, limit=limit)
    seen = figure(bound.kind.metric, value, half)
    inside = [(end >= limit) if bound.kind.at_least else (end <= limit) for end in (seen.low, seen.high)]
    wanted = Fit.KEPT if all(inside) else Fit.OPEN if any(inside) else Fit.MISSED
    assert fit_of(seen, bound) is wanted


def test_without_an_interval_a_bound_is_open_or_missed_and_without_a_figure_never_kept():
    bound = Bound(name="power", limit=10)
    assert fit_of(figure("power_w", 9), bound) is Fit.OPEN
    assert fit_of(figure("power_w", 11), bound) is Fit.MISSED
    assert fit_of(None, bound) is Fit.NO_FIGURE


@given(
    values=st.lists(st.floats(min_value=5, max_value=15), min_size=2, max_size=6),
    limit=st.floats(min_value=1, max_value=20),
    own=st.floats(min_value=0, max_value=3),
)
def test_repeats_that_settle_a_bound_are_the_least_that_do(values, limit, own):
    count = repeats_to_settle([figure("power_w", value, own) for value in values], limit)
    centre = (
        sorted(values)[len(values) // 2] if len(values) % 2 else sum(sorted(values)[len(values) // 2 - 1 :][:2]) / 2
    )
    if count is None:
        return
    assert len(values) < count <= MOST_REPEATS
    assert own < abs(centre - limit)


def test_repeats_shrink_the_scatter_and_never_the_sensors_error():
    scattered = [figure("power_w", value) for value in (9.0, 9.8, 10.6)]
    assert combine(scattered).high > 10.5
    few, many = repeats_to_settle(scattered, 12.0), repeats_to_settle(scattered, 10.0)
    assert few is not None
    assert many is not None
    assert 3 < few < many
    assert repeats_to_settle([figure("power_w", value, 0.5) for value in (9.7, 9.8, 9.9)], 10.0) is None
    assert repeats_to_settle(scattered[:1], 12.0) is None


def test_every_bound_has_an_example_that_is_one():
    for name, kind in BOUND_KINDS.items():
        assert kind.metric in METRICS
        assert parse_bounds({name: kind.example})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fastest", None, None), "there is no goal 'fastest'"),
        (("battery", None, "50Wh"), "battery life depends on how many images arrive"),
        ((None, "25Hz", None), "invalid rate '25Hz'"),
        ((None, "25", "3000mAh"), "invalid battery '3000mAh'"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_in_one_sentence(words, said):
    goal, rate, battery = words
    with pytest.raises(PowerlabError, match=said):
        parse_question(goal, {}, rate, battery)
