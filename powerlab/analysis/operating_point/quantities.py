"""Quantities as people type them: ``30ms``, ``0.03 s``, ``10W``, ``1GB``, ``25 img/s``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from powerlab.domain.errors import PowerlabError

_NUMBER = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*(.*?)\s*")

Units = Mapping[str, float]
"""What a number is multiplied with, by the unit behind it; the first unit is meant where none is written."""

MILLISECONDS: Units = {"ms": 1.0, "us": 1e-3, "µs": 1e-3, "s": 1e3}
WATTS: Units = {"W": 1.0, "mW": 1e-3, "kW": 1e3, "MW": 1e6}
IMAGES_PER_SECOND: Units = {"img/s": 1.0, "/s": 1.0, "images/s": 1.0, "fps": 1.0, "/min": 1 / 60, "/h": 1 / 3600}
MEGABYTES: Units = {"MB": 1.0, "GB": 1e3, "kB": 1e-3, "MiB": 1.048576, "GiB": 1073.741824, "M": 1.0, "G": 1e3}
CELSIUS: Units = {"°C": 1.0, "C": 1.0}
DECIBELS: Units = {"dB": 1.0}
PERCENT: Units = {"%": 1.0}
WATT_HOURS: Units = {"Wh": 1.0, "mWh": 1e-3, "kWh": 1e3, "kJ": 1 / 3.6}


def parse_quantity(name: str, text: str, units: Units, example: str) -> float:
    """Return a quantity in the first of its units.

    Capitals do not matter where only one unit can be meant: ``10w`` is 10 W, but ``10mw`` may be mW or MW.

    Args:
        name: what it is, for the error, such as ``p99``.
        text: as typed.
        units: those that are understood.
        example: what could have been typed.

    Raises:
        PowerlabError: it is no number above 0, or its unit is none of these.
    """
    said = f"invalid {name} {text[:80]!r}"
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise PowerlabError(f"{said}: give a number and a unit, such as {example}.")
    number, word = float(found[1]), found[2]
    alike = [unit for unit in units if unit == word] or [unit for unit in units if unit.lower() == word.lower()]
    if word and len(alike) != 1:
        raise PowerlabError(f"{said}: {word[:40]!r} is none of its units; choose from: {', '.join(units)}.")
    value = number * units[alike[0] if word else next(iter(units))]
    if not (math.isfinite(value) and value > 0):
        raise PowerlabError(f"{said}: it must be above 0, such as {example}.")
    return value
