"""The line protocol of meters over serial or TCP.

One reading a line, sent when it was measured; lines end with LF, CR or both. A line is

    12.34                         power in W
    12.34 W                       with a unit: W, mW, uW, µW or kW
    P=12.34 W                     with a name, which is the configured ``field`` (P unless stated)
    V=230.1 V, I=0.05 A, P=12.34  several values, separated by commas, semicolons or spaces; ``field`` is used
    # anything                    a remark; empty lines are skipped too

Numbers have a decimal point and perhaps an exponent. Names are compared without regard to case. Power is positive: a
negative number is an error mark of many meters. Every other line is no reading and is skipped; where only such lines
come, the sentence that says so quotes the last. Time stamps need not be sent: the moment of arrival is used.
"""

from __future__ import annotations

import math
import re

RAIL = "wall"

_NUMBER = r"[+-]?(?:\d{1,25}(?:\.\d{0,25})?|\.\d{1,25})(?:[eE][+-]?\d{1,3})?"
_BARE = re.compile(rf"({_NUMBER})\s*([A-Za-zµμ]*)", re.ASCII)
_NAMED = re.compile(rf"([A-Za-z_][\w.-]*)\s*=\s*({_NUMBER})(?:\s*([A-Za-zµμ%°]+)(?!\s*=|[\w.-]))?", re.ASCII)
_SEPARATORS = re.compile(r"[\s,;]*")
_UNITS = {"": 1.0, "w": 1.0, "mw": 1e-3, "uw": 1e-6, "µw": 1e-6, "μw": 1e-6, "kw": 1e3}


def parse_reading(text: str, field: str) -> dict[str, float]:
    """Return a line's power in W under the rail's name; nothing for a remark.

    Raises:
        ValueError: the line is no reading.
    """
    line = text.strip()
    if not line or line.startswith("#"):
        return {}
    if match := _BARE.fullmatch(line):
        return {RAIL: _power_w(match[1], match[2])}
    return {RAIL: _named_power_w(line, field)}


def _named_power_w(line: str, field: str) -> float:
    """Read the whole line, so that what is not understood is not passed over."""
    found: dict[str, tuple[str, str]] = {}
    position = 0
    while position < len(line):
        match = _NAMED.match(line, position)
        if match is None:
            raise ValueError(f"not a reading: {line[:60]!r}")
        found.setdefault(match[1].lower(), (match[2], match[3] or ""))
        rest = _SEPARATORS.match(line, match.end())
        position = rest.end() if rest else match.end()
    if field.lower() not in found:
        raise ValueError(f"the line has no value named {field}: {line[:60]!r}")
    return _power_w(*found[field.lower()])


def _power_w(number: str, unit: str) -> float:
    if unit.lower() not in _UNITS:
        raise ValueError(f"not a unit of power: {unit!r}")
    power_w = float(number) * _UNITS[unit.lower()]
    if not math.isfinite(power_w) or power_w < 0:
        raise ValueError(f"not a power: {number}")
    return power_w
