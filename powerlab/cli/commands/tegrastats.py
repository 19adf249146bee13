"""``powerlab tegrastats``: summarise a recorded tegrastats log."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from powerlab.command_line import time_up_to
from powerlab.domain.errors import PowerlabError

if TYPE_CHECKING:
    from powerlab.measure.energy.tegrastats_log import Summary

_LONGEST_INTERVAL_MS = 3_600_000.0

DESCRIPTION = """\
Summarise a log of NVIDIA's tegrastats: mean, minimum and maximum power of each rail, and its energy with a 95 %
interval.

Only the instantaneous power is used, not the average after the slash. The dates at the start of lines are wall-clock
time; they give the sampling interval, and the log is split where they jump.
"""

EPILOG = """\
examples:
  sudo tegrastats --interval 100 --logfile run.log     record on the board
  powerlab tegrastats run.log --interval-ms 100        summarise on any machine
  powerlab tegrastats run.log --json | jq .rails

exit status:
  0  the summary was printed
  2  the file is not a tegrastats log, or its sampling interval is unknown
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("file", metavar="FILE", type=Path, help="log file")
    parser.add_argument(
        "--interval-ms",
        metavar="N",
        type=time_up_to(_LONGEST_INTERVAL_MS, "ms"),
        help="the --interval of tegrastats (default: from the dates in the log)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.measure.energy.tegrastats_log import summarise_log

    try:
        with args.file.open(encoding="utf-8", errors="replace") as lines:
            summary = summarise_log(lines, None if args.interval_ms is None else args.interval_ms * 1e-3)
    except OSError as error:
        raise PowerlabError(
            f"cannot read {args.file}: {error.strerror or error}; give a tegrastats log file."
        ) from None
    except PowerlabError as error:
        raise PowerlabError(f"{args.file}: {error}") from None
    if args.json:
        print(json.dumps(_document(summary), indent=2))
    else:
        _print(summary)
    return 0


def _document(summary: Summary) -> dict[str, Any]:
    return {
        "parts": [
            {
                "lines": len(part.lines),
                "interval_s": part.interval_s,
                "interval_from": "dates" if part.dated else "stated",
                "first": None if (first := part.lines[0].date) is None else first.isoformat(),
                "last": None if (last := part.lines[-1].date) is None else last.isoformat(),
            }
            for part in summary.parts
        ],
        "lines_skipped": summary.skipped,
        "notes": list(summary.notes),
        "rails": {
            name: {
                "mean_w": found.mean_w,
                "min_w": found.min_w,
                "max_w": found.max_w,
                "energy_j": {"value": found.energy_j, "low": found.low_j, "high": found.high_j},
                "readings": found.readings,
            }
            for name, found in summary.rails.items()
        },
    }


def _print(summary: Summary) -> None:
    from powerlab.cli.output.console import plain_table, print_neatly, table_console
    from powerlab.cli.output.sweep_table import format_figure
    from powerlab.domain.quantity import Metric, Provenance

    console = table_console()
    for part in summary.parts:
        origin = "from the dates" if part.dated else "as given"
        interval = f", interval {part.interval_s:.4g} s ({origin})" if len(part.lines) > 1 else ""
        console.print(f"{len(part.lines)} lines over {part.duration_s:.4g} s{interval}")
    if summary.skipped:
        console.print(f"{summary.skipped} lines skipped: not tegrastats output")
    table = plain_table("rail", "mean W", "min W", "max W", "energy J")
    for name, found in summary.rails.items():
        energy = Metric(
            name="energy_j", value=found.energy_j, low=found.low_j, high=found.high_j, provenance=Provenance.MEASURED
        )
        powers = (f"{value_w:.3f}" for value_w in (found.mean_w, found.min_w, found.max_w))
        table.add_row(name, *powers, format_figure(energy))
    print_neatly(console, table)
    for note in summary.notes:
        console.print(f"note: {note}", soft_wrap=True)
