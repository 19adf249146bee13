"""``powerlab trends``: a model's figures over time, and where they changed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import msgspec

from powerlab.analysis.best import GOALS
from powerlab.analysis.dimensions import in_words
from powerlab.analysis.gate.samples import model_name
from powerlab.analysis.trends.trends import Change, Trend, trends
from powerlab.analysis.wording import counted
from powerlab.cli import EXIT_OK
from powerlab.cli.arguments.stored_runs import add_source_arguments
from powerlab.cli.output.console import plain_table, print_neatly, table_console
from powerlab.cli.output.sweep_table import format_figure
from powerlab.cli.stored.open_source import open_source
from powerlab.cli.stored.said import say
from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.domain.metric_names import metric_name
from powerlab.domain.quantity import METRICS
from powerlab.domain.run import Run
from powerlab.protocol.records import SweepRecord
from powerlab.sources.source import RunChoice, Source, SweepChoice

DESCRIPTION = """\
Show the figures of a model over the sweeps of each device, point by point, and where they changed: the change points,
each with its size and with what else changed at that time, such as versions of the model, the engine, powerlab, the
kernel or JetPack. The probability of a false alarm is at most 1 %, over all series shown.
"""

EPILOG = """\
exit status: 0 success; 2 there is no such device or metric, or no sweep with a valid run of the model

examples:
  powerlab trends --model resnet50
  powerlab trends --model resnet50 --device board-1 --metric throughput_img_per_s
  powerlab trends --model detector --from http://server:8765 --json
"""

_BARS = "▁▂▃▄▅▆▇█"
_WIDEST = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--model", required=True, help="the model, of whatever version")
    parser.add_argument("--device", metavar="NAME", help="only this device (default: each that measured the model)")
    parser.add_argument(
        "--metric",
        metavar="NAME",
        action="append",
        default=[],
        help="metric to show, such as p99, img/s, J/img; may be repeated (default: all that have a best point)",
    )
    parser.add_argument("--limit", type=int, default=200, metavar="N", help="the newest N sweeps (default: 200)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    names = tuple(dict.fromkeys(map(metric_name, args.metric))) or tuple(GOALS.values())
    if args.limit < 1:
        raise PowerlabError(f"--limit {args.limit} leaves no sweep; give at least 1.")
    with open_source(args) as source:
        sweeps = _sweeps(source, args)
        found = trends([(sweep.device_name, _runs(source, sweep, args.model)) for sweep in sweeps], names)
        say(source, counted(len(sweeps), "sweep"))
    if not found:
        raise PowerlabError(
            f"no sweep has a valid run of {args.model} with such a metric; `powerlab runs list` shows what there is."
        )
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        show(found)
    return EXIT_OK


def _sweeps(source: Source, args: argparse.Namespace) -> list[SweepRecord]:
    """Return the newest sweeps of the model, of whatever version of it."""
    wanted = model_name(args.model)
    everything = [
        sweep for sweep in source.sweeps(SweepChoice()) if wanted in {model_name(model) for model in sweep.plan.models}
    ]
    devices = list(dict.fromkeys(sweep.device_name for sweep in everything))
    if not everything:
        measured = [sweep for sweep in source.sweeps(SweepChoice()) if sweep.stored_run_count]
        models = sorted({model_name(model) for sweep in measured for model in sweep.plan.models})
        there = f"there are: {', '.join(models)}" if models else f"`powerlab profile {args.model}` measures one"
        raise PowerlabError(f"no sweep of {args.model!r} is stored{meant(args.model, models)}; {there}.")
    if args.device is not None and args.device not in devices:
        raise PowerlabError(
            f"no sweep of {args.model} is of the device {args.device!r}{meant(args.device, devices)}; there are: "
            f"{', '.join(devices)}."
        )
    return [sweep for sweep in everything if args.device in {None, sweep.device_name}][: args.limit]


def _runs(source: Source, sweep: SweepRecord, model: str) -> list[Run]:
    """Return the runs of the model, or of the one version that is asked for."""
    runs = source.runs(RunChoice(sweep_id=sweep.id))
    return [run for run in runs if model in {run.point.workload.model, model_name(run.point.workload.model)}]


def show(found: Sequence[Trend]) -> None:
    """Print, for each series, its figures as bars, its newest figure, and its changes."""
    console = table_console()
    for trend in found:
        kind = METRICS[trend.metric]
        first, last = trend.values[0], trend.values[-1]
        print_neatly(
            console,
            f"{trend.device}: {in_words(trend.point)}",
            f"{kind.title} ({kind.unit}, {trend.provenance}; {'higher' if kind.higher_is_better else 'lower'} is "
            f"better), {counted(len(trend.values), 'sweep')} {_days(first.started_at, last.started_at)}",
            f"  {bars([value.value for value in trend.values])}  {format_figure(last)}",
        )
        if trend.changes:
            table = plain_table("change before", "sweep", "loss", "ratio (95 % CI)", "what else changed")
            for change in trend.changes:
                table.add_row(*_cells(trend, change))
            print_neatly(console, table)
        else:
            print_neatly(console, f"  {_nothing(trend)}")
        console.print()


def _days(first: str, last: str) -> str:
    return f"on {first[:10]}" if first[:10] == last[:10] else f"from {first[:10]} to {last[:10]}"


def bars(values: Sequence[float]) -> str:
    """Return a bar for each value, from the lowest to the highest of the last :data:`_WIDEST`."""
    shown = values[-_WIDEST:]
    low, high = min(shown), max(shown)
    steps = len(_BARS) - 1
    places = [steps // 2 if high == low else round((value - low) / (high - low) * steps) for value in shown]
    return "".join(_BARS[place] for place in places)


def _cells(trend: Trend, change: Change) -> Iterator[str]:
    at = next(value.started_at for value in trend.values if value.sweep_id == change.first_after)
    yield at[:16].replace("T", " ")
    yield change.first_after
    yield f"{100 * change.loss:.2g} %"
    yield f"{change.ratio:.3f} ({change.low:.3f} to {change.high:.3f})"
    yield "; ".join(map(str, change.differences)) or "nothing that the runs tell"


def _nothing(trend: Trend) -> str:
    if len(trend.values) < trend.fewest_values:
        return f"No change can be found yet: that takes {trend.fewest_values} sweeps."
    return "No change."
