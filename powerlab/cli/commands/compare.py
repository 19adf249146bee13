"""``powerlab compare``: which differences between points are significant."""

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
from powerlab.domain.errors import PowerlabError
from powerlab.domain.metric_names import metric_name
from powerlab.domain.quantity import METRICS
from powerlab.domain.sweep import Point

DESCRIPTION = """\
Compare points by the ratios of their metrics. A difference is significant only if the 95 % interval of the ratio
excludes 1. Errors of a sensor that both points share cancel in the ratio; scatter between repeats does not. With one
sweep, the best point is compared with all others; with two, each point of the second with the same point of the first.
"""

EPILOG = """\
exit status: 0 success; 2 there is no such sweep, or it has nothing to compare

A SWEEP is an id or a unique prefix of one (see `powerlab sweep list`), or a results file of `powerlab profile`. Several
comparisons of one metric are corrected for multiple testing (Holm, 1979). Figures of different provenance are listed
without a ratio.

examples:
  powerlab compare SWEEP                       best point against the others
  powerlab compare SWEEP --by engine           each engine against the first, all else equal
  powerlab compare BEFORE AFTER --metric p99 --metric J/img
  powerlab compare ONE OTHER --ignore mode     match points across power modes
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("sweeps", nargs="+", metavar="SWEEP", help="one sweep or two")
    parser.add_argument(
        "--metric",
        metavar="NAME",
        action="append",
        default=[],
        help="metric to compare, such as p99, img/s, J/img; may be repeated (default: all that have a best point)",
    )
    parser.add_argument("--by", metavar="DIMENSION", help="within one sweep, compare along this dimension only")
    parser.add_argument(
        "--ignore",
        metavar="DIMENSION",
        action="append",
        default=[],
        help="between two sweeps, match points that differ in this dimension; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    return compare(args)


def compare(args: argparse.Namespace) -> int:
    """Compare points within a sweep or between two; returns the exit status.

    Raises:
        PowerlabError: there is no such sweep, metric or dimension, or nothing to compare.
    """
    names = _metrics(args.metric)
    if len(args.sweeps) > 2:
        raise PowerlabError(f"{len(args.sweeps)} sweeps are too many; name one or two.")
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
    """Print one table per metric: both figures, their ratio, and the verdict.

    Args:
        matches: the comparisons.
        heading: column headings of the first and the second point.
    """
    console = table_console()
    name_of = varying(side.point for match in matches for side in (match.one, match.other))
    for name in dict.fromkeys(match.metric for match in matches):
        kind = METRICS[name]
        console.print(f"{kind.title} ({kind.unit}, {'higher' if kind.higher_is_better else 'lower'} is better)")
        table = plain_table(heading[0], "figure", heading[1], "figure", "ratio (95 % CI)", "verdict")
        for match in matches:
            if match.metric == name:
                table.add_row(*_row(match, name_of))
        print_neatly(console, table)
        console.print()
    for sentence in _caveats(matches):
        console.print(sentence)


def _caveats(matches: Sequence[Match]) -> list[str]:
    """Return the caveats below the tables."""
    ratios = [match.ratio for match in matches if match.ratio is not None]
    said = []
    if len(matches) > len({match.metric for match in matches}):
        said.append("Verdicts are corrected for multiple comparisons per metric (Holm, 1979).")
    if any(not ratio.paired for ratio in ratios):
        said.append("Some points share no repeats, so their ratio includes any drift of the device between them.")
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


def _metrics(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(metric_name, words))) or tuple(GOALS.values())


def _check_options(args: argparse.Namespace, sweeps: Sequence[SweepRuns]) -> None:
    if args.by is not None and len(sweeps) > 1:
        raise PowerlabError("--by compares within one sweep; name only one, or use --ignore to compare two.")
    if args.ignore and len(sweeps) == 1:
        raise PowerlabError("--ignore compares two sweeps; name a second one, or use --by within one.")


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
            "the sweeps have no point in common; use --ignore to match points that differ in a dimension, such as mode."
        )
    return "the sweep has fewer than two points with usable figures; `powerlab runs list --sweep` shows its runs."


def match_document(match: Match) -> dict[str, Any]:
    """Return a comparison as JSON-compatible values, without its runs."""
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
