"""`powerlab runs show`: what a run's intervals are made of, and what its images cost."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.analysis.budget import RULE
from powerlab.analysis.carbon import Factors
from powerlab.cli import main
from powerlab.cli.arguments.carbon_and_cost import factors_from
from powerlab.cli.output.sweep_report import document
from powerlab.cli.stored.local_database import begin
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Contribution, EffectKind
from powerlab.protocol.wire import decode
from powerlab.store import open_store
from server_examples import PLAN, capabilities, device, runs_of


def line(metric: str, origin: str, effect: str, uncertainty: float) -> Contribution:
    return Contribution(
        metric=metric, origin=origin, effect=effect, kind=EffectKind.B, standard_uncertainty=uncertainty
    )


BUDGET = (
    line("power_w", "ina3221:CPU", "gain", 0.06),
    line("power_w", "ina3221:GPU", "gain", 0.02),
    line("power_w", "ina3221:CPU", "offset", 0.06),
    line("idle_power_w", "idle", "drift", 0.01),
    line("energy_above_idle_per_image_j", "ina3221:CPU", "idle offset", 0.004),
    line("energy_above_idle_per_image_j", "idle", "drift", 0.003),
)
ENERGY = Metric(name="energy_per_image_j", value=0.36, low=0.18, high=0.54, provenance=Provenance.SIMULATED)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Return a database with a run that has a budget and an energy per image, and one that has neither."""
    path = tmp_path_factory.mktemp("stored") / "runs.db"
    store = open_store(path)
    sweep = begin(store, device(), capabilities(), PLAN)
    rich, bare, *_ = runs_of(sweep.sweep_id)
    simulated = (replace(figure, provenance=Provenance.SIMULATED) for figure in rich.metrics)
    rich = replace(rich, budget=BUDGET, metrics=(*simulated, ENERGY))
    for run in (rich, bare):
        sweep.add(run, ())
    sweep.finish(None)
    store.close()
    return SimpleNamespace(path=str(path), rich=rich, bare=bare)


def shown(capsys, stored, run, *words: str) -> str:
    assert main(["runs", "show", run.id, "--database", stored.path, *words]) == 0
    return capsys.readouterr().out


def test_the_budget_is_a_table_with_shares_of_the_variance(stored, capsys):
    text = shown(capsys, stored, stored.rich)
    rows = [" ".join(row.split()) for row in text.splitlines()]
    assert "contribution source type power W idle power W above idle J/img" in rows
    assert "sensor gain ina3221, 2 rails B 0.080 (64.0 %) – –" in rows
    assert "sensor offset ina3221, 2 rails B 0.060 (36.0 %) – –" in rows
    assert "sensor offset, idle ina3221, 2 rails B – – 0.0040 (64.0 %)" in rows
    assert "drift between the idle baselines idle B – 0.010 (100.0 %) 0.0030 (36.0 %)" in rows
    assert RULE in text


def test_a_sentence_a_figure_names_what_limits_it(stored, capsys):
    text = shown(capsys, stored, stored.rich)
    assert "Power while running: main uncertainty: sensor gain (ina3221, 2 rails, 64 %" in text
    assert "Idle power in the same mode: main uncertainty: drift between the idle baselines" in text


def test_the_json_holds_every_line_rail_by_rail(stored, capsys):
    document = json.loads(shown(capsys, stored, stored.rich, "--json"))
    assert decode(json.dumps(document["budget"]).encode(), tuple[Contribution, ...]) == BUDGET
    assert "costs" not in document


def test_a_sweeps_document_holds_the_budgets_of_its_points(stored):
    made = document("s", device(), PLAN, [stored.rich])
    assert decode(json.dumps(made["summaries"][0]["budget"]).encode(), tuple[Contribution, ...]) == BUDGET[:3], (
        "the lines of the figures that the point has"
    )


def test_a_run_without_a_budget_says_nothing_about_one(stored, capsys):
    text = shown(capsys, stored, stored.bare)
    assert "uncertainty" not in text
    assert "main uncertainty" not in text


def test_carbon_and_cost_state_their_factor_their_interval_and_that_nobody_measured_them(stored, capsys):
    text = shown(capsys, stored, stored.rich, "--carbon", "380", "--price", "0.30EUR")
    assert "CO2e per million images: 38 ±19 g (simulated; at 380 g CO2e per kWh, which is an assumption)" in text
    assert (
        "Electricity per million images: 0.030 ±0.015 EUR (simulated; at 0.3 EUR per kWh, which is an assumption)"
        in text
    )


def test_they_are_in_the_json_where_they_are_asked_for(stored, capsys):
    document = json.loads(shown(capsys, stored, stored.rich, "--json", "--carbon", "500"))
    (cost,) = document["costs"]
    assert (cost["value"], cost["low"], cost["high"]) == pytest.approx((50, 25, 75))
    assert (cost["unit"], cost["provenance"], cost["factor"]) == ("g", "simulated", "500 g CO2e per kWh")
    assert json.loads(shown(capsys, stored, stored.bare, "--json", "--carbon", "500"))["costs"] == []


def test_a_run_without_energy_has_no_costs(stored, capsys):
    assert "CO2e" not in shown(capsys, stored, stored.bare, "--carbon", "380")


@pytest.mark.parametrize("text", ["x", "-1", "nan", "inf", "", "1e3", "5001", "38O", "0,38", "１２"])
def test_a_bad_carbon_factor_is_one_sentence(stored, capsys, text):
    assert main(["runs", "show", stored.rich.id, "--database", stored.path, f"--carbon={text}"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"powerlab: invalid --carbon {text}: give g CO2e per kWh from 0 to 5000")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("text", ["x", "-1", "EUR", "0.3EURO", "1e5EUR", "0,30", "", "0.3 EUR/kWh"])
def test_a_bad_price_is_one_sentence(stored, capsys, text):
    assert main(["runs", "show", stored.rich.id, "--database", stored.path, f"--price={text}"]) == 2
    assert (
        f"powerlab: invalid --price {text}: give the price of a kWh as a number and a currency"
        in capsys.readouterr().err
    )


def test_a_bad_factor_ends_a_sweep_before_it_begins(capsys):
    assert main(["profile", "mobilenetv2", "--board", "jetson-nano", "--carbon", "much"]) == 2
    assert "invalid --carbon much" in capsys.readouterr().err


def parsed(carbon: str | None, price: str | None) -> Factors:
    return factors_from(argparse.Namespace(carbon=carbon, price=price))


@pytest.mark.parametrize(
    ("text", "price", "currency"),
    [
        ("0.30EUR", 0.3, "EUR"),
        ("0.3 USD", 0.3, "USD"),
        (".25€", 0.25, "€"),
        ("12", 12.0, ""),
        ("7.kr", 7.0, "kr"),
        ("0", 0.0, ""),
    ],
)
def test_prices_are_numbers_with_a_currency(text, price, currency):
    found = parsed(None, text)
    assert (found.price_per_kwh, found.currency) == (price, currency)
    assert found.carbon_g_per_kwh is None


def test_nothing_asked_is_nothing_said():
    assert parsed(None, None) == Factors()


@given(text=st.text(max_size=12) | st.from_regex(r"[0-9.]{1,6}[A-Z]{0,4}", fullmatch=True))
def test_any_text_is_a_factor_of_0_or_more_or_one_refusal(text):
    for carbon, price in ((text, None), (None, text)):
        try:
            found = parsed(carbon, price)
        except PowerlabError:
            continue
        (value,) = [one for one in (found.carbon_g_per_kwh, found.price_per_kwh) if one is not None]
        assert 0 <= value < float("inf")
