"""``powerlab boards fault``: inject and clear faults of a simulated board."""

from __future__ import annotations

import argparse
from pathlib import Path

_DESCRIPTION = """\
Inject a fault into a simulated board, or clear it with --clear. Without NAME, list the faults of this board. Faults act
only while the sensors are live (`powerlab boards simulate --run`).
"""

_EPILOG = """\
examples:
  powerlab boards fault /tmp/xavier                    list faults, and which are active
  powerlab boards fault /tmp/xavier stale              freeze the sensors' values
  powerlab boards fault /tmp/xavier stale --clear      unfreeze them
"""


def add_action(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action to ``powerlab boards``."""
    fault = actions.add_parser(
        "fault", help="inject or clear a fault of a simulated board", description=_DESCRIPTION, epilog=_EPILOG
    )
    fault.add_argument("directory", metavar="DIR", type=Path, help="directory of a simulated board")
    fault.add_argument("name", metavar="NAME", nargs="?", help="fault to inject or clear (default: list faults)")
    fault.add_argument("--clear", action="store_true", help="clear the fault")


def run(args: argparse.Namespace) -> int:
    """Run the action.

    Raises:
        PowerlabError: the directory is not a simulated board, or the board does not have the fault.
    """
    from powerlab.boards.simulator.faults.control import clear_fault, set_fault
    from powerlab.domain.errors import PowerlabError
    from powerlab.sysroot import Sysroot

    sysroot = Sysroot(args.directory.absolute())
    if args.name is None:
        if args.clear:
            raise PowerlabError("--clear needs the name of a fault; omit --clear to list them.")
        _list(sysroot.base)
    elif args.clear:
        clear_fault(sysroot, args.name)
        print(f"cleared {args.name} on {args.directory}")
    else:
        set_fault(sysroot, args.name)
        print(f"injected {args.name} on {args.directory}; --clear clears it")
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
    in_effect = active(sysroot)
    table = plain_table("fault", "effect", "active")
    for name in faults_of(layout.read_marker(sysroot)["board"]):
        table.add_row(name, Text(FAULTS[name].summary), "yes" if name in in_effect else "-")
    Page().show(table)
