"""Carbon and cost: arithmetic on the energy per image, and nothing that looks measured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.analysis.carbon import Factors, costs
from powerlab.domain.quantity import METRICS, Metric, Provenance

FACTOR = st.floats(0, 5000)


def energy(value: float = 3.6, low: float | None = 1.8, high: float | None = 7.2, **changes: Provenance) -> Metric:
    fields = {"provenance": Provenance.MEASURED, **changes}
    return Metric(name="energy_per_image_j", value=value, low=low, high=high, **fields)


def test_a_million_images_of_a_kilowatt_hour_cost_the_factor():
    """3.6 J an image are 1 kWh a million images."""
    carbon, money = costs(energy(), Factors(carbon_g_per_kwh=380, price_per_kwh=0.3, currency="EUR"))
    assert (carbon.value, carbon.low, carbon.high) == pytest.approx((380, 190, 760))
    assert (money.value, money.low, money.high) == pytest.approx((0.3, 0.15, 0.6))
    assert (carbon.unit, money.unit) == ("g", "EUR")
    assert carbon.factor == "380 g CO2e per kWh"
    assert money.factor == "0.3 EUR per kWh"


@given(joules=st.floats(1e-6, 1e4), part=st.floats(0, 1), factor=FACTOR)
def test_figure_and_interval_scale_alike(joules, part, factor):
    metric = energy(joules, joules * (1 - part), joules * (1 + part))
    (one,) = costs(metric, Factors(carbon_g_per_kwh=factor))
    assert one.low <= one.value <= one.high
    assert one.value * 3.6 == pytest.approx(joules * factor)
    assert one.high - one.value == pytest.approx(one.value * part, abs=1e-9 * (one.value + 1e-9))


def test_only_what_was_asked_for_is_said():
    assert list(costs(energy(), Factors())) == []
    assert [one.title for one in costs(energy(), Factors(price_per_kwh=1.0))] == ["Electricity per million images"]
    assert list(costs(None, Factors(carbon_g_per_kwh=380))) == []


def test_a_factor_of_0_is_a_factor():
    (one,) = costs(energy(), Factors(carbon_g_per_kwh=0.0))
    assert (one.value, one.low, one.high) == (0, 0, 0)


def test_without_an_interval_there_is_none():
    (one,) = costs(energy(low=None, high=None), Factors(price_per_kwh=0.3))
    assert (one.low, one.high) == (None, None)
    assert one.unit == "currency units"


@pytest.mark.parametrize("provenance", list(Provenance))
def test_the_provenance_is_the_energys(provenance):
    (one,) = costs(energy(provenance=provenance), Factors(carbon_g_per_kwh=380))
    assert one.provenance is provenance


def test_it_is_no_metric_that_could_be_stored():
    assert not [name for name in METRICS if "carbon" in name or "cost" in name or "price" in name]
