"""Figures as people read them: what is printed is what was measured, to the digits the interval allows."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.analysis.dimensions import in_words
from powerlab.analysis.rounding import LOPSIDED
from powerlab.cli.output.sweep_table import format_figure, format_number
from powerlab.domain.quantity import METRICS, Metric, Provenance
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Workload

FIGURE = re.compile(r"(?P<value>-?\d+(\.\d+)?) (±(?P<half>\d+(\.\d+)?)|\+(?P<up>\d+(\.\d+)?)/-(?P<down>\d+(\.\d+)?))")
VALUES = st.floats(1e-3, 1e6)
SHARES = st.floats(1e-4, 10.0)


def figure(value: float, low: float | None, high: float | None, provenance=Provenance.MEASURED) -> Metric:
    return Metric(name="power_w", value=value, low=low, high=high, provenance=provenance)


@given(VALUES, SHARES, SHARES)
def test_a_printed_interval_is_the_interval_within_its_last_digit(value, down, up):
    metric = figure(value, value - down * value, value + up * value)
    text = format_figure(metric)
    parts = FIGURE.fullmatch(text)
    assert parts, text
    wider = max(metric.high - metric.value, metric.value - metric.low)
    places = len(text.split()[0].partition(".")[2])
    step = 10.0**-places
    assert abs(float(parts["value"]) - value) <= step / 2 * (1 + 1e-9) + 1e-12 * value
    if parts["half"] is not None:
        assert wider <= LOPSIDED * min(metric.high - value, value - metric.low)
        shown = [(float(parts["half"]), wider)]
    else:
        shown = [(float(parts["up"]), metric.high - value), (float(parts["down"]), value - metric.low)]
    for printed, real in shown:
        assert abs(printed - real) <= step / 2 * (1 + 1e-9) + 1e-12 * value
    assert step <= wider or places == 0, "the wider side keeps two digits"


@given(VALUES, SHARES, SHARES)
def test_value_and_interval_end_at_the_same_place(value, down, up):
    numbers = re.findall(r"\d+(?:\.\d+)?", format_figure(figure(value, value * (1 - down), value * (1 + up))))
    assert len({len(number.partition(".")[2]) for number in numbers}) == 1


@given(st.floats(-1e12, 1e12), st.integers(1, 8))
def test_a_number_is_never_scientific_and_keeps_its_sign(value, digits):
    text = format_number(value, digits)
    if abs(value) >= 1e-9:
        assert "e" not in text
        assert float(text) == pytest.approx(value, rel=10.0 ** (1 - digits))
    assert float(text) * value >= 0


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_no_number_is_shown_as_such(value):
    assert float(format_number(value, 4)) == pytest.approx(value, nan_ok=True)


@pytest.mark.parametrize(("low", "high"), [(None, None), (9.0, None), (None, 11.0)])
def test_half_an_interval_is_none(low, high):
    assert format_figure(figure(10.0, low, high)) == "10.00"


def test_an_interval_can_be_left_out():
    assert format_figure(figure(12.3456, 12.0, 13.0), interval=False) == "12.35"


def test_every_metric_has_a_unit_and_a_title():
    assert all(kind.unit and kind.title for kind in METRICS.values())


@pytest.mark.parametrize(("threads", "wording"), [(1, "1 thread"), (2, "2 threads")])
def test_a_point_is_named_in_words(threads, wording):
    point = Point(workload=Workload(model="alexnet", batch_size=8), threads=threads, mode="MAXN")
    assert in_words(point) == f"alexnet, batch 8, {wording}, mode MAXN"
