"""``powerlab doctor``: what this machine can measure and set, and what to do about what it cannot."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from powerlab.sweep.host import Host

_DESCRIPTION = """\
Say what this machine can measure and set, and what to do about what it cannot.

Nothing is changed. Sources that could be read with more rights come with the command that grants them.
"""

_EPILOG = """\
examples:
  powerlab doctor                                  this machine
  powerlab doctor --board jetson-agx-xavier        a simulated board
  powerlab doctor --json | jq .total               for machines

exit status:
  0  the report was printed, whatever it says
  2  the request cannot be carried out, for example an unknown board
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "doctor",
        help="what this machine can measure and set",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--board", metavar="NAME", help="a simulated board instead of this machine (see powerlab boards)"
    )
    where.add_argument("--sysroot", metavar="DIR", type=Path, help="look below DIR instead of /")
    parser.add_argument("--json", action="store_true", help="print JSON for machines")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.doctor_report import document, print_report

    with _host(args) as host:
        found = document(host)
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        print_report(found)
    return 0


@contextmanager
def _host(args: argparse.Namespace) -> Iterator[Host]:
    """Yield the host that is meant; a simulated board keeps its mode journal in its own tree."""
    from powerlab.boards.simulator import simulated_board
    from powerlab.cli.results import state_dir
    from powerlab.domain.errors import PowerlabError
    from powerlab.sweep.host import Host
    from powerlab.sysroot import Sysroot

    if args.board is not None:
        with simulated_board(args.board) as sysroot:
            yield Host(sysroot=sysroot, state_dir=sysroot.path("/var/lib/powerlab"))
    elif args.sysroot is not None:
        if not args.sysroot.is_dir():
            raise PowerlabError(f"--sysroot {args.sysroot} is no directory; give the root of a device's file tree.")
        sysroot = Sysroot(args.sysroot.absolute())
        yield Host(sysroot=sysroot, state_dir=sysroot.path("/var/lib/powerlab"))
    else:
        yield Host(state_dir=state_dir())
