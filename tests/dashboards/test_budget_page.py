"""What a run's page says of its uncertainty, and a sweep's of what limits its best efficiency."""

from __future__ import annotations

import dataclasses

import pytest
from starlette.testclient import TestClient

from powerlab.analysis.budget import RULE, rows_by_source
from powerlab.domain.run import Contribution, EffectKind
from powerlab_dashboards.pages.run import budget_table, rail_rows
from tests.dashboards import plausible
from tests.dashboards.conftest import Shelf
from tests.dashboards.test_pages import EVIL, structure, words

ALL_ON = {"modes": ("MAXN",), "batch_sizes": (1,)}


@pytest.fixture
def run(shelf: Shelf):
    return shelf.add_sweep(plausible.xavier(), plausible.plan(**ALL_ON)).runs[0]


def test_the_page_shows_every_effect_with_its_shares(client: TestClient, run) -> None:
    text = words(client.get(f"/runs/{run.id}").text)
    assert "Uncertainty budget" in text
    for row in rows_by_source(run.budget):
        shares = " ".join(f"{cell.percent:.1f} %" for cell in list(row.cells.values())[:1])
        assert f"{row.effect} {row.origin} {row.kind}" in text
        assert shares in text
    assert RULE.split(".")[-2].strip() in text
    assert "main uncertainty: sensor gain" in text


def test_every_rail_is_there_to_be_looked_at(client: TestClient, run) -> None:
    text = words(client.get(f"/runs/{run.id}").text)
    assert "By rail" in text
    for rail in run.total.rails:
        assert f"sensor gain {rail} B" in text


def test_a_run_without_power_or_of_an_older_powerlab_has_no_budget_section(client: TestClient, shelf: Shelf) -> None:
    bare = shelf.add_sweep(plausible.bare(), plausible.plan(modes=("current",))).runs[0]
    assert "Uncertainty budget" not in client.get(f"/runs/{bare.id}").text
    assert budget_table(()) is None


def test_one_rail_has_no_second_table() -> None:
    line = Contribution(
        metric="power_w", origin="rapl:package-0", effect="gain", kind=EffectKind.B, standard_uncertainty=0.1
    )
    table = budget_table((line,))
    assert table.by_rail == ()
    assert table.metrics == {"power_w": ("Power", "W")}


def test_the_sweeps_answer_names_what_limits_the_efficiency_most(client: TestClient, shelf: Shelf) -> None:
    sweep = shelf.add_sweep(plausible.xavier(), plausible.plan(**ALL_ON))
    text = words(client.get(f"/sweeps/{sweep.id}").text)
    assert text.count("main uncertainty") == 1
    assert "Efficiency (images per joule): main uncertainty: " in text


def test_names_in_a_budget_are_shown_as_text(client: TestClient, shelf: Shelf) -> None:
    plan = plausible.plan(**ALL_ON)
    runs = plausible.runs(plausible.xavier(), plan, "to be set")
    hostile = Contribution(metric="power_w", origin=EVIL, effect=EVIL, kind=EffectKind.B, standard_uncertainty=9.0)
    runs[0] = dataclasses.replace(runs[0], budget=(hostile, *runs[0].budget))
    sweep = shelf.add_sweep(plausible.xavier(), plan, made=runs)
    for address in (f"/runs/{sweep.runs[0].id}", f"/sweeps/{sweep.id}"):
        html = client.get(address).text
        assert "<img" not in html
        assert structure(html).inline == []


def test_a_rails_calibrated_lag_stands_beside_its_error(client: TestClient, run) -> None:
    assert words(client.get(f"/runs/{run.id}").text).count("not calibrated") == len(run.total.rails)


@pytest.mark.parametrize(
    ("lag_s", "error_s", "shown"), [(0.0, 0.0, ""), (0.0481, 0.003, "48.1 ±5.9"), (-0.002, 0.0101, "−2 ±20")]
)
def test_a_lag_has_the_digits_of_its_interval(lag_s, error_s, shown) -> None:
    bench = plausible.xavier()
    made = plausible.runs(bench, plausible.plan(**ALL_ON), "s")[0]
    trace = plausible.traces(bench, made)[0]
    rail = dataclasses.replace(trace.rail, lag_s=lag_s, lag_error_s=error_s)
    (row,) = rail_rows(made, [dataclasses.replace(trace, rail=rail)])
    assert row.lag == shown
