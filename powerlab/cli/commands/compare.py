"""``powerlab compare``: which differences between points are significant."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import msgspec

from powerlab.analysis.best import GOALS
from powerlab.analysis.matches import Match, along, best_against_rest
from powerlab.cli import EXIT_OK
from powerlab.cli.arguments.stored_runs import add_source_arguments
from powerlab.cli.output.match_tables import match_document, show_matches
from powerlab.cli.output.set_tables import compare_named
from powerlab.cli.stored.run_sets import GRAMMAR, find_sets, ignored_dimensions
from powerlab.domain.errors import PowerlabError
from powerlab.domain.metric_names import metric_name
from powerlab.domain.run import Run, Verdict

DESCRIPTION = """\
Compare points by the ratios of their metrics. A difference is significant only if the 95 % interval of the ratio
excludes 1, which takes three valid runs of both points. Errors of a sensor that both share cancel in the ratio; scatter
between repeats does not. With one sweep, the best point is compared with all others; with two or more sets of runs,
every set with the first one, point by point and as a whole, and each metric has a winner, a tie, or not enough data.
"""

EPILOG = f"""\
exit status: 0 success; 2 there is no such sweep, or it has nothing to compare

{GRAMMAR}
Several comparisons of one metric are corrected for multiple testing (Holm, 1979). Figures of different provenance are
listed without a ratio.

examples:
  powerlab compare SWEEP                       best point against the others
  powerlab compare SWEEP --by engine           each engine against the first, all else equal
  powerlab compare BEFORE AFTER --metric p99 --metric J/img
  powerlab compare SWEEP:engine=builtin SWEEP:engine=onnxruntime SWEEP:engine=openvino
  powerlab compare device=xavier-3 device=orin-1 --ignore mode
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("sets", nargs="+", metavar="SET", help="one sweep, or sets of runs; the first is the baseline")
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
        help="between sets, match points that differ in this dimension; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    return compare(args)


def compare(args: argparse.Namespace) -> int:
    """Compare points within a sweep, or sets of runs; returns the exit status.

    Raises:
        PowerlabError: there is no such sweep, metric or dimension, or nothing to compare.
    """
    names = _metrics(args.metric)
    _check_options(args)
    sets = find_sets(args.sets, args)
    if len(sets) > 1:
        return compare_named([one.runs for one in sets], names, ignored_dimensions(sets, args), as_json=args.json)
    runs = sets[0].runs.runs
    matches = [match for name in names for match in _matches(args, runs, name)]
    if not matches:
        raise PowerlabError(_nothing(args.sets[0], runs))
    if args.json:
        document = {
            "sweeps": list(dict.fromkeys(run.sweep_id for run in runs)),
            "matches": [match_document(match) for match in matches],
        }
        print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    else:
        show_matches(matches, ("best", "against") if args.by is None else (args.by, "against"))
    return EXIT_OK


def _metrics(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(metric_name, words))) or tuple(GOALS.values())


def _check_options(args: argparse.Namespace) -> None:
    if args.by is not None and len(args.sets) > 1:
        raise PowerlabError("--by compares within one sweep; name only one, or use --ignore to compare several sets.")
    if args.ignore and len(args.sets) == 1:
        raise PowerlabError("--ignore compares sets of runs; name a second one, or use --by within one sweep.")


def _matches(args: argparse.Namespace, runs: Sequence[Run], name: str) -> tuple[Match, ...]:
    return best_against_rest(runs, name) if args.by is None else along(runs, args.by, name)


def _nothing(word: str, runs: Sequence[Run]) -> str:
    valid = sum(run.verdict is Verdict.VALID for run in runs)
    return (
        f"{word} has fewer than two points with usable figures ({valid} of {len(runs)} runs are valid); "
        f"`powerlab runs list --sweep {runs[0].sweep_id[:8]}` shows its runs."
    )
