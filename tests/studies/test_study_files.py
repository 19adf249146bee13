"""The studies' files: complete, honest about what is published, and in units powerlab knows."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import pytest

import powerlab.studies
from powerlab.analysis.dimensions import DIMENSIONS
from powerlab.domain.errors import PowerlabError
from powerlab.domain.preflight import ENGINES
from powerlab.domain.quantity import METRICS, Provenance
from powerlab.studies.registry import STUDIES, find_study, parse_study
from powerlab.studies.study import Case, Published

DATA = Path(powerlab.studies.__file__).parent / "data"


def test_every_file_is_a_study():
    assert set(STUDIES) == {path.stem for path in DATA.glob("*.toml")}
    assert len(STUDIES) >= 5


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_a_study_says_what_it_asked_and_where_its_figures_come_from(study):
    for text in (study.title, study.asks, study.source):
        assert text
        assert text == " ".join(text.split())
    for one in study.not_repeated:
        assert one.what
        assert one.why
        assert not one.why.endswith(".")
    assert not study.compared or study.compared in {dimension.title for dimension in DIMENSIONS}


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_every_network_of_a_sweep_has_a_place_in_the_table(study):
    swept = {model for plan in study.plans for model in plan.models}
    assert {model for case in study.cases for model in case.models} == swept
    for plan in study.plans:
        assert set(plan.engines) <= {*ENGINES, "all"}
        assert min(plan.batch_sizes + plan.quick_batch_sizes) >= 1
        assert not plan.quick_batch_sizes or max(plan.quick_batch_sizes) <= max(plan.batch_sizes)


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_published_figures_are_finite_without_interval_and_say_so(study):
    for case in study.cases:
        for row in case.published:
            assert row.figures
            for name in row.figures:
                metric = row.metric(name)
                assert metric.provenance is Provenance.PUBLISHED
                assert math.isfinite(metric.value)
                assert metric.value > 0
                assert (metric.low, metric.high) == (None, None)


def test_the_whitepapers_table_fits_together():
    """img/s ÷ W is img/s/W to the digits that were printed."""
    for case in find_study("tegra-x1-alexnet").cases:
        for row in case.published:
            made = row.figures["throughput_img_per_s"] / row.figures["power_w"]
            assert made == pytest.approx(row.figures["efficiency_img_per_s_per_w"], rel=0.01, abs=0.06)


def test_a_row_without_a_figure_has_none():
    assert Published(system="a", figures={"power_w": 1.0}).metric("latency_p50_ms") is None


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("dlbenhc", r"there is no study 'dlbenhc' \(did you mean dlbench\?\); choose from: aa, armv8-cluster"),
        ("../aa", "there is no study"),
        ("", "there is no study"),
    ],
)
def test_an_unknown_study_is_refused(name, sentence):
    with pytest.raises(PowerlabError, match=sentence):
        find_study(name)


def test_a_file_with_a_slip_is_refused():
    document = tomllib.loads((DATA / "aa.toml").read_text(encoding="utf-8"))
    with pytest.raises(TypeError):
        parse_study("aa", {**document, "titel": "x"})
    with pytest.raises(TypeError):
        parse_study("aa", {**document, "plans": [{**document["plans"][0], "batch": 1}]})
    with pytest.raises(ValueError, match="which is not a metric"):
        parse_study("aa", {**document, "metrics": ["watts"]})
    with pytest.raises(ValueError, match="is not a valid Threads"):
        parse_study("aa", {**document, "plans": [{"models": ["alexnet"], "threads": "some"}]})
    row = {"system": "x", "figures": {"watts": 1}}
    with pytest.raises(ValueError, match="which is not a metric"):
        parse_study("aa", {**document, "cases": [{"title": "x", "models": ["alexnet"], "published": [row]}]})


def test_a_case_takes_points_by_network_and_batch():
    from tests.analysis.paired_runs import point

    case = Case(title="large", models=("resnet50",), least_batch=2, most_batch=8)
    sized = [Case(title="any", models=("resnet50",)).holds(point()), case.holds(point())]
    assert sized == [True, False]
    assert not Case(title="other", models=("alexnet",)).holds(point())
    assert Case(title="file", models=("alexnet",)).holds(point(), {"alexnet": "resnet50"})
    assert not Case(title="file", models=("resnet50",)).holds(point(), {"resnet50": "net.onnx"})


def test_every_metric_of_a_table_is_known():
    assert {name for study in STUDIES.values() for name in study.metrics} <= set(METRICS)
