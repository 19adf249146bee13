"""``powerlab apply``: set the power mode of an operating point, to stay, and say how to run the model there."""

from __future__ import annotations

import argparse
from pathlib import Path

from powerlab.cli.arguments.host import add_host_arguments, open_host
from powerlab.cli.arguments.operating_point import add_question_arguments, question_from
from powerlab.cli.arguments.stored_runs import add_source_arguments

DESCRIPTION = """\
Set the power mode of the best operating point on this device, and show how to run the model there. The mode stays until
`powerlab modes restore`; the previous settings are in the journal of changes.
"""

EPILOG = """\
exit status: 0 success; 2 no point keeps all bounds, several points are meant, another device measured them, or the mode
cannot be set

examples:
  sudo powerlab apply SWEEP --rate 25 --p99 40ms   what `powerlab best` recommends for these
  sudo powerlab apply POINT                        a point's id, as `powerlab best --json` shows it
  sudo powerlab modes restore                      go back
  powerlab apply SWEEP --sysroot /tmp/xavier       on a board of `powerlab boards simulate`
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "sweep",
        metavar="SWEEP|MODEL|POINT",
        help="a sweep's id, a results file, a model's name, or a point's id; first digits suffice",
    )
    parser.add_argument("--point", metavar="ID", help="this point of the sweep instead of the best one")
    add_question_arguments(parser)
    parser.add_argument(
        "--other-device",
        action="store_true",
        help="although another device measured it, which may differ from this one",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_host_arguments(parser)
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.analysis.dimensions import in_words
    from powerlab.cli import EXIT_OK
    from powerlab.cli.commands.apply.chosen import chosen_point
    from powerlab.cli.commands.apply.report import as_json, how_to_run, say_kept
    from powerlab.cli.commands.modes.report import print_settings
    from powerlab.cli.process.interrupts import orderly_ends
    from powerlab.domain.mode import CURRENT_MODE, CURRENT_MODE_NAME

    question = question_from(args)
    with orderly_ends(), open_host(args) as host:
        point = chosen_point(args, question, host.device())
        mode = CURRENT_MODE if point.mode == CURRENT_MODE_NAME else host.controller.set(point.mode)
        if args.json:
            print(as_json(point, mode.settings))
            return EXIT_OK
        print(f"Operating point {point.id}: {in_words(point)}")
        print_settings(mode.settings)
        root = "" if host.sysroot.base == Path("/") else f" --sysroot {args.sysroot}"
        print(say_kept(mode, args.board, root))
        print(how_to_run(point, args.board, root))
    return EXIT_OK
