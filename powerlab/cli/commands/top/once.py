"""One reading, printed as a table or as JSON.

Counters and load are differences between two readings, so the printed one comes an interval after the command began.
"""

from __future__ import annotations

import json
import time
from typing import Any

import msgspec
from rich.text import Text

from powerlab.cli.commands.top.layout import layout
from powerlab.cli.output.console import print_neatly, table_console
from powerlab.readings.minute import Recent
from powerlab.readings.reader import Reader
from powerlab.readings.reading import Reading

_WIDTH = 100


def print_once(reader: Reader, interval_s: float, *, as_json: bool) -> None:
    """Wait for an interval, read, and print."""
    time.sleep(interval_s)
    reading = reader.read()
    if as_json:
        print(json.dumps(document(reading), indent=2))
        return
    console = table_console()
    console.width = min(console.width, _WIDTH)
    cost = Text(f"This reading took {reading.cost_s * 1e3:.1f} ms of processor time.", style="dim")
    print_neatly(console, layout(reading, console.width), Text(), cost)


def document(reading: Reading) -> dict[str, Any]:
    """Return a reading for machines; a figure that cannot be read is null, and never 0."""
    found: dict[str, Any] = msgspec.to_builtins(reading, str_keys=True)
    for written, rail in zip(found["rails"], reading.rails, strict=True):
        written.update(_flat(written.pop("recent"), rail.recent))
    if reading.total is not None:
        found["total"].update(_flat(found["total"].pop("recent"), reading.total.recent))
    return found


def _flat(written: dict[str, Any], recent: Recent) -> dict[str, Any]:
    return {"power_w": written["power_w"], "mean_w": recent.mean_w, "peak_w": recent.peak_w}
