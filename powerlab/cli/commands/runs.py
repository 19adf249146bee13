"""``powerlab runs``: list and show stored runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import msgspec

from powerlab.analysis.budget import RULE, SHOWN, Cell, limit, rows_by_source
from powerlab.analysis.carbon import Factors, costs
from powerlab.analysis.dimensions import in_words
from powerlab.analysis.surroundings import surroundings
from powerlab.cli import EXIT_OK
from powerlab.cli.arguments.carbon_and_cost import add_factor_arguments, factors_from
from powerlab.cli.arguments.carbon_and_cost import in_words as cost_lines
from powerlab.cli.arguments.stored_runs import add_filter_arguments, add_source_arguments
from powerlab.cli.output.console import identified, plain_table, print_neatly, table_console
from powerlab.cli.output.sweep_table import ABSENT, format_figure, format_number
from powerlab.cli.stored.runs import stored_run, stored_runs
from powerlab.domain.quantity import METRICS, Metric
from powerlab.domain.run import Contribution, Run
from powerlab.protocol.wire import encode

DESCRIPTION = "List stored runs, or show one with its metrics, intervals, provenance and findings."

EPILOG = """\
exit status: 0 success; 2 there is no such run, or the source cannot be used

examples:
  powerlab runs list --sweep SWEEP
  powerlab runs show RUN --json
  powerlab runs show RUN --carbon 380 --price 0.30EUR
  powerlab runs list --from http://server:8765
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    listed = actions.add_parser(
        "list",
        help="list runs, oldest first",
        description="List stored runs in order of arrival.",
    )
    add_filter_arguments(listed)
    show = actions.add_parser(
        "show",
        help="show one run",
        description="Show one run with its metrics, provenance, findings and uncertainty budget.",
    )
    show.add_argument("run_id", metavar="RUN", help="run id, or a unique prefix of it")
    add_factor_arguments(show)
    for action in (listed, show):
        add_source_arguments(action)
        action.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    return show(args) if args.action == "show" else list_all(args)


def list_all(args: argparse.Namespace) -> int:
    """Print one row per run."""
    runs = stored_runs(args)
    if args.json:
        print(encode(list(runs)).decode())
        return EXIT_OK
    table = plain_table("run", "started", "verdict", "img/s", "img/s/W")
    for one in runs:
        table.add_row(
            identified(one.id, f"{in_words(one.point)}, repeat {one.repeat + 1}"),
            one.started_at[:19].replace("T", " "),
            one.verdict,
            *(_sourced(one.metric(name)) for name in ("throughput_img_per_s", "efficiency_img_per_s_per_w")),
        )
    print_neatly(table_console(), table)
    return EXIT_OK


def _sourced(figure: Metric | None) -> str:
    return format_figure(figure, interval=False) + (f" {figure.provenance}" if figure else "")


def show(args: argparse.Namespace) -> int:
    """Print one run."""
    factors = factors_from(args)
    run = stored_run(args)
    carbon_and_cost = tuple(costs(run.metric("energy_per_image_j"), factors))
    if args.json:
        made = msgspec.to_builtins(run) | (
            {"costs": msgspec.to_builtins(carbon_and_cost)} if factors != Factors() else {}
        )
        print(msgspec.json.format(encode(made), indent=2).decode())
        return EXIT_OK
    print(f"{run.id}: {in_words(run.point)}, repeat {run.repeat + 1}, {run.verdict}, started {run.started_at}")
    for finding in run.findings:
        print(f"  {finding.verdict} ({finding.rule}): {finding.detail}")
    table = plain_table("metric", "value", "unit", "provenance")
    for metric in run.metrics:
        kind = METRICS[metric.name]
        table.add_row(kind.title, format_figure(metric), kind.unit, metric.provenance)
    print_neatly(table_console(), table)
    print("power: none" if run.total is None else f"power: {' + '.join(run.total.rails)}, {run.total.scope}")
    for line in (*_node_lines(run), *cost_lines(carbon_and_cost)):
        print(line)
    if run.conditions is not None and run.conditions.traces_shed:
        print(f"traces: {run.conditions.traces_shed}")
    for title, text in surroundings(run):
        print(f"{title}: {text}")
    if run.budget:
        print_budget(run.budget)
    return EXIT_OK


def _node_lines(run: Run) -> Iterator[str]:
    """Yield what each of several devices used, whose sum the run's power is."""
    window_s = (run.window_ns[1] - run.window_ns[0]) / 1e9
    for node in () if run.conditions is None else run.conditions.nodes:
        if node.energy_j is None or node.low_j is None or node.high_j is None:
            yield f"device {node.name}: its power may not be used"
            continue
        clock = f", clock known to ±{1e3 * node.clock_error_s:.3g} ms" if node.clock_error_s else ""
        half_j = (node.high_j - node.low_j) / 2
        yield f"device {node.name}: {node.energy_j / window_s:.4g} W, {node.energy_j:.4g} J ± {half_j:.2g} J{clock}"


def print_budget(budget: Sequence[Contribution]) -> None:
    """Print the uncertainty budget of power and energy: standard uncertainties and shares of the variance."""
    found = rows_by_source(budget)
    metrics = [metric for metric in SHOWN if any(metric in row.cells for row in found)]
    headings = (f"{SHOWN[metric].lower()} {METRICS[metric].unit}" for metric in metrics)
    table = plain_table("contribution", "source", "type", *headings)
    for row in found:
        table.add_row(row.effect, row.origin, row.kind, *(_share(row.cells.get(metric)) for metric in metrics))
    print()
    print_neatly(table_console(), table)
    print(f"Values are standard uncertainties with their share of the variance; --json lists them per rail. {RULE}")
    for metric in metrics:
        print(limit(budget, metric))


def _share(cell: Cell | None) -> str:
    return ABSENT if cell is None else f"{format_number(cell.standard_uncertainty, 2)} ({cell.percent:.1f} %)"
