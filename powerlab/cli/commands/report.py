"""``powerlab report``: a sweep, or sets of runs compared, as a document."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from powerlab.cli import EXIT_OK
from powerlab.cli.arguments.stored_runs import add_source_arguments
from powerlab.cli.stored.run_sets import GRAMMAR, NamedSet, find_sets, ignored_dimensions
from powerlab.domain.errors import PowerlabError
from powerlab.domain.metric_names import metric_name

if TYPE_CHECKING:
    from powerlab.cli.stored.sweeps import SweepRuns
    from powerlab.reports.blocks import Document
    from powerlab.reports.subject import Subject

DESCRIPTION = """\
Write a report of a sweep, or of up to eight sets of runs, each against the first: the answer and how sure it is, every
point with its 95 % interval and provenance, figures, device and conditions, uncertainty, validity, the method as a
paragraph, the command that repeats it, and BibTeX entries. HTML is one file that needs no network.
"""

EPILOG = f"""\
--output NAME.html, .md (figures beside it), .tex (booktabs tables and the method) or .pdf writes that format; a folder
gets all of them, and the figures as SVG and PNG. PDF and PNG need Chromium.

{GRAMMAR}
exit status: 0 written; 2 there is no such sweep, it has no usable runs, nothing can be compared, or the report cannot
be written

examples:
  powerlab report 3f2a91c0
  powerlab report 3f2a91c0 --output results
  powerlab report 3f2a91c0 --output sweep.pdf --from http://server:8765
  powerlab report 3f2a91c0 8c1e77d2 --output comparison.html
  powerlab report before.ndjson after.ndjson --ignore mode
  powerlab report 3f2a91c0:mode=15W 3f2a91c0:mode=7W --metric p99 --metric J/img
"""

_MOST = 8
_LONGEST_NAME = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "sets", nargs="+", metavar="SET", help="one sweep, or up to eight sets of runs; the first is the baseline"
    )
    parser.add_argument("--output", metavar="FILE|DIR", help="where to write (default: report-SET.html in this folder)")
    parser.add_argument(
        "--metric",
        metavar="NAME",
        action="append",
        default=[],
        help="metric to compare, such as p99, img/s, J/img; may be repeated (default: time, power and energy)",
    )
    parser.add_argument(
        "--ignore",
        metavar="DIMENSION",
        action="append",
        default=[],
        help="between sets, match points that differ in this dimension; may be repeated",
    )
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.reports.files import check_output, write_report

    _check_options(args)
    if args.output is not None:
        check_output(Path(args.output))
    sets = find_sets(args.sets, args, detailed=True)
    label = "-".join(map(_name, sets))[:_LONGEST_NAME]
    document = _of_one(sets[0]) if len(sets) == 1 else _of_several(sets, args)
    written = write_report(document, Path(args.output or f"report-{label}.html"), f"powerlab-{label}")
    for path in written.paths:
        print(path)
    if written.left_out:
        print(f"powerlab: {written.left_out}", file=sys.stderr)
    return EXIT_OK


def _check_options(args: argparse.Namespace) -> None:
    if len(args.sets) > _MOST:
        raise PowerlabError(f"a report compares up to {_MOST} sets of runs; {len(args.sets)} were given.")
    for option, values in (("--ignore", args.ignore), ("--metric", args.metric)):
        if values and len(args.sets) == 1:
            raise PowerlabError(f"{option} is for comparing sets of runs; name a second one.")


def _name(one: NamedSet) -> str:
    """Return what stands for a set in the names of files."""
    if len(one.sweeps) == 1 and len(one.runs.runs) == len(one.sweeps[0].runs):
        return one.sweeps[0].id[:8]
    return re.sub(r"[^\w.+]+", "-", one.runs.label).strip("-.")


def _of_one(one: NamedSet) -> Document:
    """Return the report of a whole sweep.

    Raises:
        PowerlabError: the set is of several sweeps, or not all of one.
    """
    from powerlab.reports.sweep import sweep_report

    if len(one.sweeps) > 1:
        ids = " ".join(sweep.id[:8] for sweep in one.sweeps[:_MOST])
        raise PowerlabError(
            f"{one.runs.label} has runs of {len(one.sweeps)} sweeps; report one of them, or compare up to {_MOST}, "
            f"such as `powerlab report {ids}`."
        )
    (sweep,) = one.sweeps
    if len(one.runs.runs) < len(sweep.runs):
        raise PowerlabError(
            f"{one.runs.label} is a part of sweep {sweep.id[:8]}; report the sweep, or name a second set to compare."
        )
    return sweep_report(_subject(sweep))


def _of_several(sets: list[NamedSet], args: argparse.Namespace) -> Document:
    from powerlab.reports.comparison import COMPARED, ReportedSet, comparison_report

    reported = [ReportedSet(runs=one.runs, sweeps=tuple(map(_subject, one.sweeps))) for one in sets]
    names = tuple(dict.fromkeys(map(metric_name, args.metric))) or COMPARED
    return comparison_report(reported, ignored_dimensions(sets, args), names)


def _subject(sweep: SweepRuns) -> Subject:
    from powerlab.reports.subject import Subject

    return Subject(
        sweep_id=sweep.id,
        device_name=sweep.device,
        simulated=sweep.simulated,
        plan=sweep.plan,
        runs=sweep.runs,
        device=sweep.details,
    )
