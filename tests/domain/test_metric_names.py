"""Metrics by the names that people use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError
from powerlab.domain.metric_names import METRIC_NAMES, metric_name, short_metric_names
from powerlab.domain.quantity import METRICS


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("p50", "latency_p50_ms"),
        ("P99", "latency_p99_ms"),
        ("p99.9", "latency_p99_9_ms"),
        ("latency", "latency_p50_ms"),
        ("img/s", "throughput_img_per_s"),
        ("throughput", "throughput_img_per_s"),
        ("J/img", "energy_per_image_j"),
        ("energy", "energy_per_image_j"),
        ("img/s/W", "efficiency_img_per_s_per_w"),
        ("images per joule", "efficiency_img_per_s_per_w"),
        ("W", "power_w"),
        ("watts", "power_w"),
        ("idle-power", "idle_power_w"),
        ("temperature", "end_temperature_c"),
        ("memory", "peak_memory_mb"),
        ("qps", "server_queries_per_s"),
    ],
)
def test_a_metric_is_known_by_what_people_call_it(word: str, name: str) -> None:
    assert metric_name(word) == name


def test_every_metric_has_a_usual_name_that_means_it() -> None:
    assert [metric_name(word) for word in short_metric_names()] == list(METRICS)
    assert all(metric_name(name) == name for name in METRICS)


@given(st.sampled_from(sorted(METRIC_NAMES)), st.sampled_from([" ", "-", "_", "  "]), st.booleans())
def test_capitals_and_what_joins_words_do_not_matter(word: str, joint: str, upper: bool) -> None:
    said = word.replace(" ", joint)
    assert metric_name(said.upper() if upper else said) == METRIC_NAMES[word]


@given(st.text())
def test_any_other_word_is_refused_in_one_sentence(word: str) -> None:
    try:
        assert metric_name(word) in METRICS
    except PowerlabError as error:
        assert str(error).startswith("unknown metric ")  # noqa: PT017 - either of two outcomes is right


def test_a_misspelt_metric_gets_a_suggestion() -> None:
    with pytest.raises(PowerlabError, match=r"unknown metric 'throughputt' \(did you mean throughput\?\)"):
        metric_name("throughputt")
