"""``powerlab compare``: which differences between points are real."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from powerlab.analysis.best import GOALS
from powerlab.analysis.dimensions import varying
from powerlab.analysis.matches import Match, Side, along, best_against_rest, between_sweeps
from powerlab.analysis.wording import ratio_words, verdict_words
from powerlab.cli import EXIT_OK
from powerlab.cli.arguments.stored_runs import add_source_arguments
from powerlab.cli.output.console import plain_table, print_neatly, table_console
from powerlab.cli.output.sweep_table import format_figure
from powerlab.cli.stored.sweeps import SweepRuns, find_sweep
from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import METRICS
from powerlab.domain.sweep import Point

DESCRIPTION = """\
Compare points by the ratio of their figures. A difference is claimed only where the 95 % interval of the ratio excludes
1. What one sensor does to both points cancels in the ratio; the scatter between repeats does not. One sweep: the best
point against all others. Two sweeps: each point of the second against the same point of the first.
"""

EPILOG = """\
exit status: 0 compared; 2 there is no such sweep, or nothing in it can be compared

A SWEEP is an identifier or its first digits (`powerlab sweep list`), or a file that `powerlab profile` wrote. Of
several comparisons of one metric, only those are claimed that hold together at 95 % (Holm, 1979). Figures of
different provenance are shown side by side, without a ratio.

examples:
  powerlab compare SWEEP                       the best point against the others
  powerlab compare SWEEP --by engine           each engine against the first, all else alike
  powerlab compare BEFORE AFTER --metric energy_per_image_j
  powerlab compare ONE OTHER --ignore mode     points of different power modes against each other
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("sweeps", nargs="+", metavar="SWEEP", help="one sweep or two")
    parser.add_argument(
        "--metric", metavar="NAME", action="append", default=[], help="what to compare (default: what has a best point)"
    )
    parser.add_argument("--by", metavar="DIMENSION", help="within one sweep, compare along this dimension alone")
    parser.add_argument(
        "--ignore", metavar="DIMENSION", action="append", default=[], help="between two sweeps, let points differ in it"
    )
    parser.add_argument("--json", action="store_true", help="print JSON for machines")
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    return compare(args)


def compare(args: argparse.Namespace) -> int:
    """Compare one sweep's points or two sweeps'; returns the exit status.

    Raises:
        PowerlabError: there is no such sweep, metric or dimension, or nothing that can be compared.
    """
    names = _metrics(args.metric)
    if len(args.sweeps) > 2:
        raise PowerlabError(f"{len(args.sweeps)} sweeps are too many; name one, or two to compare them.")
    sweeps = [find_sweep(word, args) for word in args.sweeps]
    _check_options(args, sweeps)
    matches = [match for name in names for match in _matches(args, sweeps, name)]
    if not matches:
        raise PowerlabError(_nothing(sweeps))
    if args.json:
        document = {"sweeps": [sweep.id for sweep in sweeps], "matches": [match_document(match) for match in matches]}
        print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    else:
        show_matches(matches, _heading(args, sweeps))
    return EXIT_OK


def show_matches(matches: Sequence[Match], heading: tuple[str, str]) -> None:
    """Print a table a metric: both figures, their ratio, and what may be said of it.

    Args:
        matches: what to show.
        heading: what the first and the second point of every match are called.
    """
    console = table_console()
    name_of = varying(side.point for match in matches for side in (match.one, match.other))
    for name in dict.fromkeys(match.metric for match in matches):
        kind = METRICS[name]
        console.print(f"{kind.title} ({kind.unit}, {'more' if kind.higher_is_better else 'less'} is better)")
        table = plain_table(heading[0], "figure", heading[1], "figure", "ratio, 95 %", "the first is")
        for match in matches:
            if match.metric == name:
                table.add_row(*_row(match, name_of))
        print_neatly(console, table)
        console.print()
    for sentence in _caveats(matches):
        console.print(sentence)


def _caveats(matches: Sequence[Match]) -> list[str]:
    """Return what a reader must know beside the tables."""
    ratios = [match.ratio for match in matches if match.ratio is not None]
    said = []
    if len(matches) > len({match.metric for match in matches}):
        said.append("Claimed is what holds at 95 % together with all other claims about the same metric (Holm, 1979).")
    if any(not ratio.paired for ratio in ratios):
        said.append("Some points have no repeats in common: what changed on the device between them is in their ratio.")
    return said


def _row(match: Match, name_of: Callable[[Point], str]) -> tuple[str, ...]:
    cells = [text for side in (match.one, match.other) for text in (name_of(side.point), _figure(side))]
    if match.ratio is None:
        return (*cells, match.reason, "")
    return (*cells, ratio_words(match.ratio), verdict_words(match.ratio, claimed=match.claimed))


def _figure(side: Side) -> str:
    if side.metric is None:
        return format_figure(None)
    return f"{format_figure(side.metric)} {side.metric.provenance}"


def _metrics(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if name not in METRICS:
            raise PowerlabError(
                f"there is no metric {name!r}{meant(name, list(METRICS))}; choose from: {', '.join(METRICS)}."
            )
    return tuple(names) or tuple(GOALS.values())


def _check_options(args: argparse.Namespace, sweeps: Sequence[SweepRuns]) -> None:
    if args.by is not None and len(sweeps) > 1:
        raise PowerlabError("--by compares within one sweep; name one, or use --ignore between two.")
    if args.ignore and len(sweeps) == 1:
        raise PowerlabError("--ignore is for two sweeps; name a second one, or use --by within one.")


def _matches(args: argparse.Namespace, sweeps: Sequence[SweepRuns], name: str) -> tuple[Match, ...]:
    if len(sweeps) == 2:
        first, second = sweeps
        one_device = (first.device, first.simulated) == (second.device, second.simulated)
        return between_sweeps(second.runs, first.runs, name, one_device=one_device, ignored=args.ignore)
    runs = sweeps[0].runs
    return best_against_rest(runs, name) if args.by is None else along(runs, args.by, name)


def _heading(args: argparse.Namespace, sweeps: Sequence[SweepRuns]) -> tuple[str, str]:
    if len(sweeps) == 2:
        return "second sweep", "first sweep"
    return ("best", "against") if args.by is None else (args.by, "against")


def _nothing(sweeps: Sequence[SweepRuns]) -> str:
    if len(sweeps) == 2:
        return (
            "no point of one sweep is in the other; say with --ignore in which dimension they may differ, such as mode."
        )
    return "the sweep has no two points with usable figures to compare; `powerlab runs list --sweep` shows its runs."


def match_document(match: Match) -> dict[str, Any]:
    """Return a match as values that JSON can hold, without the runs, which the store has."""
    sides = {
        title: {
            "sweep_id": side.runs[0].sweep_id,
            "point_id": side.point.id,
            "point": side.point,
            "figure": side.metric,
        }
        for title, side in (("one", match.one), ("other", match.other))
    }
    found: dict[str, Any] = msgspec.to_builtins(
        {
            "metric": match.metric,
            **sides,
            "ratio": match.ratio,
            "claimed": match.claimed,
            "statement": match.reason if match.ratio is None else verdict_words(match.ratio, claimed=match.claimed),
        }
    )
    return found
