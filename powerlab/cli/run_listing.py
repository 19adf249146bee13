"""Carries out ``powerlab runs``."""

from __future__ import annotations

import argparse

import msgspec

from powerlab.analysis.dimensions import in_words
from powerlab.cli import EXIT_OK
from powerlab.cli.consoles import identified, plain_table, print_neatly, table_console
from powerlab.cli.run_source import stored_run, stored_runs
from powerlab.cli.tables import format_figure
from powerlab.domain.quantity import METRICS
from powerlab.protocol.wire import encode


def list_all(args: argparse.Namespace) -> int:
    """Print a line a run."""
    runs = stored_runs(args)
    if args.json:
        print(encode(list(runs)).decode())
        return EXIT_OK
    table = plain_table("run", "started", "verdict", "img/s", "img/s/W")
    for one in runs:
        efficiency = one.metric("efficiency_img_per_s_per_w")
        table.add_row(
            identified(one.id, f"{in_words(one.point)}, repeat {one.repeat}"),
            one.started_at[:19].replace("T", " "),
            one.verdict,
            format_figure(one.metric("throughput_img_per_s"), interval=False),
            format_figure(efficiency, interval=False) + (f" {efficiency.provenance}" if efficiency else ""),
        )
    print_neatly(table_console(), table)
    return EXIT_OK


def show(args: argparse.Namespace) -> int:
    """Print one run."""
    run = stored_run(args)
    if args.json:
        print(msgspec.json.format(encode(run), indent=2).decode())
        return EXIT_OK
    print(f"{run.id}: {in_words(run.point)}, repeat {run.repeat}, {run.verdict}, started {run.started_at}")
    for finding in run.findings:
        print(f"  {finding.verdict} ({finding.rule}): {finding.detail}")
    table = plain_table("metric", "value", "unit", "provenance")
    for metric in run.metrics:
        kind = METRICS[metric.name]
        table.add_row(kind.title, format_figure(metric), kind.unit, metric.provenance)
    print_neatly(table_console(), table)
    print("power: none" if run.total is None else f"power: {' + '.join(run.total.rails)}, {run.total.scope}")
    return EXIT_OK
