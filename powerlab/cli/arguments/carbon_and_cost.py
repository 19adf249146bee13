"""``--carbon`` and ``--price``: what a kilowatt hour costs."""

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
_MOST_CARBON = 5000.0


def add_factor_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the two options."""
    asked = parser.add_argument_group("carbon and cost, worked out from the energy per image and never stored")
    asked.add_argument(
        "--carbon", metavar="G_PER_KWH", help="g of CO2e a kWh causes, to say what a million images cause"
    )
    asked.add_argument(
        "--price", metavar="PER_KWH", help="price of a kWh, such as 0.30EUR, to say what a million images cost"
    )


def factors_from(args: argparse.Namespace) -> Factors:
    """Return what the options say.

    Raises:
        PowerlabError: one of them is no factor.
    """
    from powerlab.analysis.carbon import Factors

    price, currency = (None, "") if args.price is None else _price(args.price)
    carbon = None if args.carbon is None else _carbon(args.carbon)
    return Factors(carbon_g_per_kwh=carbon, price_per_kwh=price, currency=currency)


def _carbon(text: str) -> float:
    value = float(text) if re.fullmatch(_NUMBER, text) else math.nan
    if not 0 <= value <= _MOST_CARBON:
        raise PowerlabError(
            f"--carbon {text} is no number of g CO2e per kWh; give one from 0 to {_MOST_CARBON:.0f}, such as 380."
        )
    return value


def _price(text: str) -> tuple[float, str]:
    match = _PRICE.fullmatch(text)
    value = float(match["number"]) if match else math.nan
    if match is None or not math.isfinite(value):
        raise PowerlabError(f"--price {text} is no price of a kWh; give a number and a currency, such as 0.30EUR.")
    return value, match["currency"]


def in_words(costs: Iterable[Cost]) -> list[str]:
    """Return a line a cost, with its interval, its provenance and its factor."""
    from powerlab.cli.output.sweep_table import format_figure

    return [
        f"{cost.title}: {format_figure(cost)} {cost.unit} ({cost.provenance}; at {cost.factor}, not measured)"
        for cost in costs
    ]


def points_in_words(summaries: Iterable[PointSummary], factors: Factors) -> list[str]:
    """Return the lines of every point that has an energy per image."""
    from powerlab.analysis.carbon import costs
    from powerlab.analysis.dimensions import in_words as point_in_words

    return [
        f"{point_in_words(summary.point)}: {line}"
        for summary in summaries
        for line in in_words(costs(summary.metric("energy_per_image_j"), factors))
    ]


def points_document(summaries: Iterable[PointSummary], factors: Factors) -> list[dict[str, Any]]:
    """Return the same as values that JSON can hold."""
    from powerlab.analysis.carbon import costs

    return [
        {"point_id": summary.point.id, **asdict(cost)}
        for summary in summaries
        for cost in costs(summary.metric("energy_per_image_j"), factors)
    ]
