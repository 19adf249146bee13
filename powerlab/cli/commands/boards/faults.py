"""``powerlab boards fault``: lets faults happen on a simulated board, and puts them right."""

from __future__ import annotations

import argparse
from pathlib import Path

_DESCRIPTION = """\
Let a fault happen on a simulated board, or put it right with --clear. Without NAME the faults that this board can
have are listed. A fault is there while the board's sensors move; when they stop, the tree is as it was.
"""

_EPILOG = """\
examples:
  powerlab boards fault /tmp/xavier                    which there are, and which are in force
  powerlab boards fault /tmp/xavier stale              the sensors' values stop
  powerlab boards fault /tmp/xavier stale --clear      and go on
"""


def add_action(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action to ``powerlab boards``."""
    fault = actions.add_parser(
        "fault", help="let a fault happen on a simulated board", description=_DESCRIPTION, epilog=_EPILOG
    )
    fault.add_argument("directory", metavar="DIR", type=Path, help="a simulated board's directory")
    fault.add_argument("name", metavar="NAME", nargs="?", help="which fault; none: list them")
    fault.add_argument("--clear", action="store_true", help="put it right")


def run(args: argparse.Namespace) -> int:
    """Run the action.

    Raises:
        PowerlabError: the directory is no simulated board, or its board cannot have the fault.
    """
    from powerlab.boards.simulator.faults.control import clear_fault, set_fault
    from powerlab.domain.errors import PowerlabError
    from powerlab.sysroot import Sysroot

    sysroot = Sysroot(args.directory.absolute())
    if args.name is None:
        if args.clear:
            raise PowerlabError("--clear needs the name of a fault; without --clear the names are listed.")
        _list(sysroot.base)
    elif args.clear:
        clear_fault(sysroot, args.name)
        print(f"{args.name} is put right on {args.directory}")
    else:
        set_fault(sysroot, args.name)
        print(f"{args.name} is set on {args.directory}; --clear puts it right")
    return 0


def _list(directory: Path) -> None:
    from rich.text import Text

    from powerlab.boards.simulator import layout
    from powerlab.boards.simulator.faults.control import active, faults_of
    from powerlab.boards.simulator.faults.registry import FAULTS
    from powerlab.cli.output.console import plain_table
    from powerlab.cli.output.page import Page
    from powerlab.sysroot import Sysroot

    sysroot = Sysroot(directory)
    in_force = active(sysroot)
    table = plain_table("fault", "what happens", "in force")
    for name in faults_of(layout.read_marker(sysroot)["board"]):
        table.add_row(name, Text(FAULTS[name].summary), "yes" if name in in_force else "-")
    Page().show(table)
