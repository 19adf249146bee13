"""``--carbon`` and ``--price``: emissions and cost of a kilowatt hour."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from powerlab.domain.errors import PowerlabError

if TYPE_CHECKING:
    from powerlab.analysis.carbon import Cost, Factors
    from powerlab.analysis.summary import PointSummary

_NUMBER = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"
_PRICE = re.compile(rf"(?P<number>{_NUMBER})\s*(?P<currency>[^\W\d_]{{0,3}}|[$€£¥])")
_MAX_CARBON = 5000.0


def add_factor_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the two options."""
    group = parser.add_argument_group("carbon and cost (computed from the energy per image, not stored)")
    group.add_argument(
        "--carbon", metavar="G_PER_KWH", help="carbon intensity in g CO2e per kWh: show emissions per million images"
    )
    group.add_argument(
        "--price", metavar="PER_KWH", help="price of a kWh, such as 0.30EUR: show cost per million images"
    )


def factors_from(args: argparse.Namespace) -> Factors:
    """Return the factors that the options give.

    Raises:
        PowerlabError: an option has an invalid value.
    """
    from powerlab.analysis.carbon import Factors

    price, currency = (None, "") if args.price is None else _price(args.price)
    carbon = None if args.carbon is None else _carbon(args.carbon)
    return Factors(carbon_g_per_kwh=carbon, price_per_kwh=price, currency=currency)


def _carbon(text: str) -> float:
    value = float(text) if re.fullmatch(_NUMBER, text) else math.nan
    if not 0 <= value <= _MAX_CARBON:
        raise PowerlabError(f"invalid --carbon {text}: give g CO2e per kWh from 0 to {_MAX_CARBON:.0f}, such as 380.")
    return value


def _price(text: str) -> tuple[float, str]:
    match = _PRICE.fullmatch(text)
    value = float(match["number"]) if match else math.nan
    if match is None or not math.isfinite(value):
        raise PowerlabError(
            f"invalid --price {text}: give the price of a kWh as a number and a currency, such as 0.30EUR."
        )
    return value, match["currency"]


def in_words(costs: Iterable[Cost]) -> list[str]:
    """Return one line per cost, with its interval, provenance and factor."""
    from powerlab.cli.output.sweep_table import format_figure

    return [
        f"{cost.title}: {format_figure(cost)} {cost.unit} ({cost.provenance}; at {cost.factor}, which is an assumption)"
        for cost in costs
    ]


def points_in_words(summaries: Iterable[PointSummary], factors: Factors) -> list[str]:
    """Return the cost lines of every point that has an energy per image."""
    from powerlab.analysis.carbon import costs
    from powerlab.analysis.dimensions import in_words as point_in_words

    return [
        f"{point_in_words(summary.point)}: {line}"
        for summary in summaries
        for line in in_words(costs(summary.metric("energy_per_image_j"), factors))
    ]


def points_document(summaries: Iterable[PointSummary], factors: Factors) -> list[dict[str, Any]]:
    """Return the same as JSON-compatible values."""
    from powerlab.analysis.carbon import costs

    return [
        {"point_id": summary.point.id, **asdict(cost)}
        for summary in summaries
        for cost in costs(summary.metric("energy_per_image_j"), factors)
    ]
