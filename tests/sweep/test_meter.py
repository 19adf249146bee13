"""What is recorded is what the total needs."""

from __future__ import annotations

import pytest

from powerlab.domain.device import Capabilities
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE
from powerlab.domain.power import Availability, Rail, RailQuantity, SourceProbe, TotalFormula
from powerlab.domain.quantity import Provenance
from powerlab.sweep.meter import choose_meter
from powerlab.sysroot import Sysroot


def rail(name: str, provenance: Provenance = Provenance.MEASURED, update_s: float = 0.0) -> Rail:
    return Rail(
        source="ina3221",
        name=name,
        quantity=RailQuantity.POWER,
        resolution=0.01,
        relative_error=0.01,
        update_period_s=update_s,
        provenance=provenance,
    )


def offering(*rails: Rail, total: tuple[str, ...] | None, available: bool = True) -> Capabilities:
    availability = Availability.AVAILABLE if available else Availability.DENIED
    probe = SourceProbe(source="ina3221", availability=availability, detail="", rails=rails)
    formula = None if total is None else TotalFormula(rails=total, scope="all")
    return Capabilities(sources=(probe,), total=formula, modes=(CURRENT_MODE,))


def test_only_the_totals_rails_are_recorded_with_a_margin_for_the_slowest():
    found = choose_meter(
        Sysroot(), offering(rail("A", update_s=0.4), rail("B", update_s=5), total=("ina3221:A",)), 0.01
    )
    assert [one.name for one in found.rails] == ["A"]
    assert found.margin_s == pytest.approx(0.8)


def test_without_a_total_nothing_is_recorded():
    found = choose_meter(Sysroot(), offering(rail("A"), total=None), 0.01)
    assert found.rails == ()
    assert found.total is None


@pytest.mark.parametrize("available", [True, False])
def test_a_total_of_a_rail_that_is_not_there_is_refused(available):
    capabilities = offering(rail("A"), total=("ina3221:A", "ina3221:B"), available=available)
    with pytest.raises(PowerlabError, match="ina3221:B cannot be read"):
        choose_meter(Sysroot(), capabilities, 0.01)


def test_a_total_of_mixed_provenance_is_refused():
    mixed = offering(rail("A"), rail("B", Provenance.ESTIMATED), total=("ina3221:A", "ina3221:B"))
    with pytest.raises(PowerlabError, match="different provenance"):
        choose_meter(Sysroot(), mixed, 0.01)
