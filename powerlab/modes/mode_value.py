"""Parse mode names that state a value, ``cpu-max=1190400kHz``. Pure functions of text."""

from __future__ import annotations

import re

from powerlab.domain.errors import PowerlabError

_NUMBER = r"(0|[1-9][0-9]{0,14})"
_FRACTION = r"((?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,6})?)"
_EXAMPLES = {"kHz": "1190400", "Hz": "522750000", "MHz": "1200"}


def text_of(name: str, key: str) -> str | None:
    """Return what stands behind ``key=``; None where the name is another one or several names joined with ``+``."""
    head, equals, text = name.partition("=")
    return text if head == key and equals and "+" not in text else None


def whole_of(name: str, key: str, unit: str) -> int | None:
    """Return the integer between ``key=`` and its unit; None where the name is another one.

    Raises:
        PowerlabError: the name begins with the key and goes on otherwise.
    """
    found = _number(name, key, unit, _NUMBER, _EXAMPLES.get(unit, "4"))
    return None if found is None else int(found)


def number_of(name: str, key: str, unit: str) -> float | None:
    """Return the number between ``key=`` and its unit, perhaps with a fraction; None where the name is another one.

    Raises:
        PowerlabError: the name begins with the key and goes on otherwise.
    """
    found = _number(name, key, unit, _FRACTION, "65" if unit else "1.5")
    return None if found is None else float(found)


def _number(name: str, key: str, unit: str, form: str, example: str) -> str | None:
    text = text_of(name, key)
    if text is None:
        return None
    match = re.fullmatch(form + unit, text)
    if match is None:
        in_unit = f" in {unit}" if unit else ""
        raise PowerlabError(f"{name!r} states no number{in_unit}; write it like {key}={example}{unit}.")
    return match[1]
