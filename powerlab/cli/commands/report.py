"""``powerlab report``: a sweep, or two compared, as a document."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from powerlab.cli import EXIT_OK
from powerlab.cli.arguments.stored_runs import add_source_arguments
from powerlab.domain.errors import PowerlabError

if TYPE_CHECKING:
    from powerlab.reports.subject import Subject

DESCRIPTION = """\
Write a report of a sweep, or of a second sweep against a first: the answer and how sure it is, every point with its
95 % interval and provenance, figures, device and conditions, uncertainty, validity, the method as a paragraph, the
command that repeats it, and BibTeX entries. HTML is one file that needs no network.
"""

EPILOG = """\
--output NAME.html, .md (figures beside it), .tex (booktabs tables and the method) or .pdf writes that format; a folder
gets all of them, and the figures as SVG and PNG. PDF and PNG need Chromium.

exit status: 0 written; 2 there is no such sweep, it has no usable runs, or the report cannot be written

examples:
  powerlab report 3f2a91c0
  powerlab report 3f2a91c0 --output results
  powerlab report 3f2a91c0 --output sweep.pdf --from http://server:8765
  powerlab report 3f2a91c0 8c1e77d2 --output comparison.html
  powerlab report before.ndjson after.ndjson --ignore mode
"""

_MOST = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "sweeps", nargs="+", metavar="SWEEP", help="sweep id, its first digits, or a results file; two are compared"
    )
    parser.add_argument(
        "--output", metavar="FILE|DIR", help="where to write (default: report-SWEEP.html in this folder)"
    )
    parser.add_argument(
        "--ignore",
        metavar="DIMENSION",
        action="append",
        default=[],
        help="match points of two sweeps that differ in this dimension; may be repeated",
    )
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.reports.comparison import comparison_report
    from powerlab.reports.files import check_output, write_report
    from powerlab.reports.sweep import sweep_report

    if len(args.sweeps) > _MOST:
        raise PowerlabError(f"a report is of one sweep, or compares two; {len(args.sweeps)} were given.")
    if args.ignore and len(args.sweeps) == 1:
        raise PowerlabError("--ignore compares two sweeps; name a second one.")
    if args.output is not None:
        check_output(Path(args.output))
    subjects = [_subject(word, args) for word in args.sweeps]
    label = "-".join(subject.short_id for subject in subjects)
    document = (
        sweep_report(subjects[0]) if len(subjects) == 1 else comparison_report(subjects[0], subjects[1], args.ignore)
    )
    written = write_report(document, Path(args.output or f"report-{label}.html"), f"powerlab-{label}")
    for path in written.paths:
        print(path)
    if written.left_out:
        print(f"powerlab: {written.left_out}", file=sys.stderr)
    return EXIT_OK


def _subject(word: str, args: argparse.Namespace) -> Subject:
    """Read a sweep and its device."""
    from powerlab.cli.stored.sweeps import opened_sweep
    from powerlab.reports.subject import Subject

    with opened_sweep(word, args) as (sweep, source):
        return Subject(
            sweep_id=sweep.id,
            device_name=sweep.device,
            simulated=sweep.simulated,
            plan=sweep.plan,
            runs=sweep.runs,
            device=source.device(sweep.id),
        )
