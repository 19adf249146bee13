"""What people read: figures with their intervals, marks, and provenance beside every power figure."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from powerlab.analysis.summary import summarise
from powerlab.cli.output.sweep_report import answer, complete, notes
from powerlab.cli.output.sweep_table import format_figure, format_number, sweep_table
from powerlab.domain.order import in_plan_order
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Finding, Verdict
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import Scenario

PLAN = SweepPlan(models=("resnet50",), threads=(1,))


def figure(value: float, low: float | None = None, high: float | None = None) -> Metric:
    return Metric(name="power_w", value=value, low=low, high=high, provenance=Provenance.MEASURED)


def printed(summaries, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(sweep_table(summaries))
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        (None, "–"),
        (figure(12.3456), "12.35"),
        (figure(0.00123456), "0.001235"),
        (figure(12.3456, 12.2, 12.5), "12.35 ±0.15"),
        (figure(1234.5, 1200.0, 1269.0), "1234 ±34"),
        (figure(1.1, 0.7, 3.4), "1.1 +2.3/-0.4"),
        (figure(5.0, 5.0, 5.0), "5.000 ±0"),
        (figure(0.0), "0"),
    ],
)
def test_a_figure_shows_no_more_digits_than_its_interval_allows(metric, text):
    assert format_figure(metric) == text


@given(value=st.floats(1e-6, 1e9), digits=st.integers(1, 6))
def test_a_number_keeps_its_significant_digits(value, digits):
    text = format_number(value, digits)
    assert "e" not in text
    assert float(text) == pytest.approx(value, rel=10 ** (1 - digits))


def test_the_best_figures_are_marked_and_provenance_stands_above(make_run):
    text = printed(
        summarise(
            [make_run(threads=1, latency_ms=20.0, power_w=5.0, provenance=Provenance.ESTIMATED) for _ in range(3)]
            + [make_run(threads=2, latency_ms=12.0, power_w=30.0, provenance=Provenance.ESTIMATED) for _ in range(3)]
        )
    )
    lines = text.splitlines()
    header = " ".join(lines[:3])
    assert header.count("estimated") == 2
    assert "measured" in header
    assert "resnet50" in lines[0]
    (one,) = [line for line in lines if line.split()[:2] == ["1", "1"]]
    (two,) = [line for line in lines if line.split()[:2] == ["1", "2"]]
    assert one.count("*") == 1
    assert two.count("*") == 2
    assert "3/3" in one


def test_figures_of_two_provenances_each_carry_their_word(make_run):
    text = printed(
        summarise(
            [make_run(threads=1, provenance=Provenance.ESTIMATED) for _ in range(3)]
            + [make_run(threads=2, provenance=Provenance.MEASURED) for _ in range(3)]
        ),
        width=160,
    )
    (one,) = [line for line in text.splitlines() if line.split()[:2] == ["1", "1"]]
    (two,) = [line for line in text.splitlines() if line.split()[:2] == ["1", "2"]]
    assert one.count("estimated") == 2
    assert two.count("measured") == 2


def test_missing_power_is_a_dash_and_never_a_zero(make_run):
    void = Finding(rule="missing-power", verdict=Verdict.VOID, detail="no source")
    text = printed(summarise([make_run(power_w=None, findings=(void,)) for _ in range(3)]))
    row = text.splitlines()[4].split()
    assert row.count("–") >= 2
    assert "0/3" in row


@pytest.mark.parametrize("width", [80, 100])
def test_a_narrow_terminal_cuts_no_figure(make_run, width):
    summaries = summarise(
        [make_run(threads=t, model=m) for t in (1, 2) for m in ("resnet50", "alexnet") for _ in "abc"]
    )
    wide, narrow = printed(summaries, 160).split(), printed(summaries, width).split()
    numbers = [word for word in wide if word.strip("*±").replace(".", "").isdigit()]
    assert numbers
    assert set(numbers) <= set(narrow)
    assert "…" not in " ".join(narrow)


def test_several_models_have_a_column(make_run):
    text = printed(summarise([make_run(model="alexnet"), make_run(model="resnet50")]))
    assert "model" in text
    assert "alexnet" in text


def in_scenario(run, scenario: Scenario, **figures: float):
    workload = replace(run.point.workload, scenario=scenario)
    more = tuple(Metric(name=name, value=value, provenance=Provenance.MEASURED) for name, value in figures.items())
    return replace(run, point=replace(run.point, workload=workload), metrics=(*run.metrics, *more))


def test_the_load_within_a_bound_has_a_column_in_the_server_scenario_alone(make_run):
    single = make_run()
    server = in_scenario(make_run(), Scenario.SERVER, server_queries_per_s=83.25)
    text = printed(summarise([single, server]))
    assert "queries/s" in text
    assert "83.25" in text
    assert "queries/s" not in printed(summarise([single]))


def test_offline_alone_has_no_columns_of_latency(make_run):
    offline = in_scenario(make_run(), Scenario.OFFLINE)
    assert "p50 ms" not in printed(summarise([offline]))
    assert "img/s" in printed(summarise([offline]))
    assert "p50 ms" in printed(summarise([offline, make_run()]))


def test_the_answer_names_point_figure_provenance_and_confidence(make_run):
    runs = [make_run(threads=1, latency_ms=20.0) for _ in range(3)] + [make_run(threads=2) for _ in range(3)]
    sentences = answer(runs)
    assert [sentence.split(":")[0] for sentence in sentences] == ["Best latency", "Best throughput", "Best efficiency"]
    assert "ms (measured) with 2 threads; winner: beats 1 thread by" in sentences[0]
    assert all(sentence.endswith(".") for sentence in sentences)
    assert answer([]) == ["No run has usable figures, so there is no best point."]


def test_the_notes_say_what_the_watts_cover_and_what_the_rules_said(make_run):
    flag = Finding(rule="background-load", verdict=Verdict.FLAGGED, detail="others used 30%")
    runs = [make_run(findings=(flag,)), make_run(findings=(flag,)), make_run()]
    lines = notes(runs, runs[0].total, PLAN)
    assert lines[0] == "Rigour quick (seconds a point, for a first look): runs of at least 5 s, 3 repeats."
    assert lines[1] == "Power is rapl:package-0 (the package)."
    assert lines[2] == "flagged (background-load, 2 times): others used 30%."
    assert notes([], None, PLAN)[1].startswith("No power: no source can be read here")


def test_a_sweep_is_complete_when_every_run_is_usable(make_run):
    void = Finding(rule="power-gap", verdict=Verdict.VOID, detail="a gap")
    assert complete([make_run(), make_run()], 2)
    assert not complete([make_run()], 2)
    assert not complete([make_run(), make_run(findings=(void,))], 2)


def test_runs_are_shown_as_the_plan_reads(make_run):
    plan = SweepPlan(models=("resnet50",), threads=(2, 1))
    runs = [make_run(threads=1), make_run(threads=2), make_run(threads=1), make_run(threads=2)]
    in_plan_order(runs, plan)
    assert [run.point.threads for run in runs] == [2, 2, 1, 1]
    assert runs[0].repeat < runs[1].repeat
