"""What images cost in carbon and money, from energy per image and factors that the user gives.

Nobody measured these figures: they are worked out where they are shown and never stored, and every output states the
factor. A factor counts as exact; its own uncertainty is whoever gave it to know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from powerlab.domain.quantity import Metric, Provenance

IMAGES = 1_000_000
"""Figures are for so many images."""
_J_PER_KWH = 3.6e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """What a kilowatt hour costs.

    Attributes:
        carbon_g_per_kwh: g of CO2 equivalent; None where nobody asks.
        price_per_kwh: in the currency; None where nobody asks.
        currency: its name, or empty.
    """

    carbon_g_per_kwh: float | None = None
    price_per_kwh: float | None = None
    currency: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What :data:`IMAGES` images cost.

    Attributes:
        title: of what.
        unit: of the figure.
        value: the figure.
        low: lower end of its 95 % interval, which is the energy's; None where that has none.
        high: upper end.
        provenance: that of the energy.
        factor: the factor in words.
    """

    title: str
    unit: str
    value: float
    low: float | None
    high: float | None
    provenance: Provenance
    factor: str


def costs(energy_per_image_j: Metric | None, factors: Factors) -> Iterator[Cost]:
    """Yield what was asked for; nothing where there is no energy per image."""
    if energy_per_image_j is None:
        return
    if factors.carbon_g_per_kwh is not None:
        grams = factors.carbon_g_per_kwh
        yield _cost(energy_per_image_j, "CO2e", "g", grams, f"{grams:g} g CO2e per kWh")
    if factors.price_per_kwh is not None:
        price = factors.price_per_kwh
        unit = factors.currency or "currency units"
        yield _cost(energy_per_image_j, "Electricity", unit, price, f"{price:g} {unit} per kWh")


def _cost(energy: Metric, title: str, unit: str, per_kwh: float, factor: str) -> Cost:
    scale = IMAGES * per_kwh / _J_PER_KWH
    return Cost(
        title=f"{title} per million images",
        unit=unit,
        value=energy.value * scale,
        low=None if energy.low is None else energy.low * scale,
        high=None if energy.high is None else energy.high * scale,
        provenance=energy.provenance,
        factor=factor,
    )
