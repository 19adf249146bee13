"""Configuration of an external meter: ``/etc/powerlab/meter.toml``.

    address = "serial:///dev/ttyUSB0?baud=115200"   # or tcp://host:port, or ptd://host:port
    resolution_w = 0.1                  # the step of a reading
    relative_error = 0.01               # of a reading, from the data sheet: 0.01 is 1 %
    update_period_s = 0.5               # how often it sends, or may be asked
    covers = "the board at its DC input"
    field = "P"                         # optional: which NAME=VALUE of a line is the power
    current_range_a = 0.5               # optional, ptd only: instead of finding a range by itself
    voltage_range_v = 300               # optional, ptd only

A user who may not write there names a file of their own in the variable POWERLAB_METER.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot

CONFIG = "/etc/powerlab/meter.toml"
VARIABLE = "POWERLAB_METER"
DEFAULT_FIELD = "P"
DEFAULT_BAUD = 115200

_PATTERNS = {
    "serial": "serial:///dev/NAME?baud=115200",
    "tcp": "tcp://HOST:PORT",
    "ptd": "ptd://HOST:PORT",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a meter is: ``kind`` is serial (with ``device`` and ``baud``), tcp or ptd (with ``host`` and ``port``)."""

    kind: str
    device: str = ""
    baud: int = DEFAULT_BAUD
    host: str = ""
    port: int = 0

    def __str__(self) -> str:
        if self.kind == "serial":
            return f"serial://{self.device}?baud={self.baud}"
        return f"{self.kind}://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterConfig:
    """A meter as its user states it; the module says what each field is."""

    address: Address
    resolution_w: float
    relative_error: float
    update_period_s: float
    covers: str
    field: str = DEFAULT_FIELD
    current_range_a: float | None = None
    voltage_range_v: float | None = None


_NUMBERS = {
    "resolution_w": (0.0, 1000.0),
    "relative_error": (0.0, 1.0),
    "update_period_s": (0.001, 60.0),
    "current_range_a": (0.001, 1000.0),
    "voltage_range_v": (0.001, 10000.0),
}
_TEXTS = ("address", "covers", "field")
_REQUIRED = ("address", "resolution_w", "relative_error", "update_period_s", "covers")


def read_config(sysroot: Sysroot) -> MeterConfig | None:
    """Return what is configured; None where nothing is.

    Raises:
        PowerlabError: the file is wrong; the sentence names file, key and what to write instead.
    """
    own = "" if sysroot.simulated else os.environ.get(VARIABLE, "")
    path, shown = (sysroot.path(CONFIG), CONFIG) if not own else (None, own)
    try:
        with open(path or own, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        if own:
            raise PowerlabError(f"{own} does not exist; {VARIABLE} must name a file like {CONFIG}.") from None
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise PowerlabError(f"{shown} cannot be read ({error}); make it a readable text file.") from None
    return parse_config(text, shown)


def parse_config(text: str, name: str) -> MeterConfig:
    """Parse a meter's file; ``name`` is what sentences call it.

    Raises:
        PowerlabError: it is wrong.
    """
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PowerlabError(f"{name} is not valid TOML ({error}); write lines like: resolution_w = 0.1") from None
    known = {*_NUMBERS, *_TEXTS}
    for key in document:
        if key not in known:
            raise PowerlabError(f"{name}: there is no key {key!r}; the keys are {', '.join(sorted(known))}.")
    for key in _REQUIRED:
        if key not in document:
            raise PowerlabError(f"{name}: the key {key} is missing; {_example(key)}.")
    for key, value in document.items():
        _check(name, key, value)
    fields: dict[str, Any] = {key: float(value) if key in _NUMBERS else value for key, value in document.items()}
    address = parse_address(fields.pop("address"), name)
    if address.kind != "ptd" and not {"current_range_a", "voltage_range_v"}.isdisjoint(fields):
        raise PowerlabError(f"{name}: ranges are set through PTDaemon alone; remove them, or use a ptd:// address.")
    return MeterConfig(address=address, **fields)


def parse_address(text: str, name: str) -> Address:
    """Parse an address.

    Raises:
        PowerlabError: it is none of the three kinds.
    """
    try:
        parts = urlsplit(text)
        if parts.scheme == "serial":
            return _serial_address(parts)
        if parts.scheme in ("tcp", "ptd") and parts.hostname and parts.port and parts.path in ("", "/"):
            return Address(kind=parts.scheme, host=parts.hostname, port=parts.port)
    except ValueError:
        pass  # a port beyond 65535, brackets that do not close: said below
    wanted = " or ".join(_PATTERNS.values())
    raise PowerlabError(f"{name}: address = {text!r} is not an address powerlab knows; write {wanted}.")


def _serial_address(parts: SplitResult) -> Address:
    options = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
    baud = options.pop("baud", str(DEFAULT_BAUD))
    if parts.netloc or options or not parts.path.startswith("/") or ".." in parts.path or not baud.isdecimal():
        raise ValueError(parts.geturl())
    return Address(kind="serial", device=parts.path, baud=int(baud))


def _check(name: str, key: str, value: object) -> None:
    if key in _TEXTS:
        if not isinstance(value, str) or not re.search(r"\S", value):
            raise PowerlabError(f"{name}: {key} = {value!r} is not text; {_example(key)}.")
        return
    low, high = _NUMBERS[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise PowerlabError(f"{name}: {key} = {value!r} is not a number from {low:g} to {high:g}; {_example(key)}.")


def _example(key: str) -> str:
    examples: Mapping[str, str] = {
        "address": f'write for example address = "{_PATTERNS["serial"]}"',
        "covers": 'say what it measures, for example covers = "the board at its DC input"',
        "field": 'name the value that is the power, for example field = "P"',
        "relative_error": "take it from the data sheet, for example relative_error = 0.01 for 1 %",
        "resolution_w": "write the step of a reading in W, for example resolution_w = 0.1",
        "update_period_s": "write how often it measures in s, for example update_period_s = 0.5",
    }
    return examples.get(key, f"write for example {key} = 1.0")
