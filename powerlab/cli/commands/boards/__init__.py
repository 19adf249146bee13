"""``powerlab boards``: known boards, and simulated ones."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from powerlab.cli.commands.boards import faults

if TYPE_CHECKING:
    from powerlab.boards.board import Board

DESCRIPTION = "List the known boards, show one, or write a simulated one to a directory."

EPILOG = """\
examples:
  powerlab boards                          list every board
  powerlab boards show jetson-agx-xavier   show its rails, total power and power modes
  powerlab boards simulate jetson-agx-xavier /tmp/xavier --run
                                           simulate one, with live sensors until Ctrl-C;
  powerlab modes --sysroot /tmp/xavier     use it in another terminal
  powerlab boards fault /tmp/xavier stale  make its sensors hang meanwhile

Every figure from a simulated board is labelled as simulated.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action")
    show = actions.add_parser("show", help="show one board", description="Show one board.")
    show.add_argument("name", metavar="NAME", help="a board name (see powerlab boards)")
    show.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    simulate = actions.add_parser(
        "simulate",
        help="write a simulated board to a directory",
        description="Write the file tree of a simulated board to a directory, for use with --sysroot.",
    )
    simulate.add_argument("name", metavar="NAME", help="a board with a simulator")
    simulate.add_argument("directory", metavar="DIR", type=Path, help="a new or empty directory")
    simulate.add_argument(
        "--jetpack", metavar="N", type=int, help="JetPack version to simulate (default: the board's first)"
    )
    simulate.add_argument("--run", action="store_true", help="simulate live sensors until Ctrl-C")
    simulate.add_argument(
        "--fault",
        metavar="NAME",
        action="append",
        default=[],
        help="inject a fault (see powerlab boards fault); may be repeated",
    )
    faults.add_action(actions)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.boards.registry import BOARDS, find_board

    if args.action == "simulate":
        return _simulate(args)
    if args.action == "fault":
        return faults.run(args)
    boards = [find_board(args.name)] if args.action == "show" else list(BOARDS.values())
    if args.json:
        documents = [asdict(board) for board in boards]
        print(json.dumps(documents[0] if args.action == "show" else documents, indent=2))
    elif args.action == "show":
        _show(boards[0])
    else:
        _list(boards)
    return 0


def _list(boards: list[Board]) -> None:
    from powerlab.cli.output.console import plain_table
    from powerlab.cli.output.page import Page

    table = plain_table("board", "cores", "total power", "simulator")
    for board in boards:
        total = " + ".join(_rail_names(board)) or "probed"
        table.add_row(board.name, str(board.core_count or "-"), total, "yes" if board.simulatable else "-")
    Page().show(table)


def _rail_names(board: Board) -> list[str]:
    return [rail.partition(":")[2] for rail in board.total.rails] if board.total else []


def _show(board: Board) -> None:
    print(f"{board.name}: {board.title}")
    print(f"  cores       {board.core_count or 'depends on the variant'}")
    if board.total:
        print(f"  power       {' + '.join(_rail_names(board))}")
        print(f"              ({board.total.scope})")
    for chip in board.chips:
        shunt = f", shunts {chip.shunt_uohm} µΩ" if chip.shunt_uohm else ""
        print(f"  monitor     {chip.address}: {', '.join(name or '(unused)' for name in chip.channels)}{shunt}")
    for mode in board.vendor_modes:
        cpu = f"{mode.cpu_khz / 1000:g} MHz" if mode.cpu_khz > 0 else "no CPU cap"
        reboot = ", needs a reboot" if mode.requires_reboot else ""
        only = f", {_jetpacks(mode.jetpacks)} only" if mode.jetpacks else ""
        print(f"  mode {mode.id:<7}{mode.name}: {mode.cores} cores, {cpu}{reboot}{only} (published)")
    variants = f", as {_jetpacks(board.jetpacks)}" if board.jetpacks else ""
    print(f"  simulator   {f'yes{variants}' if board.simulatable else 'no'}")
    if board.notes:
        print(f"  note        {board.notes}")


def _jetpacks(numbers: tuple[int, ...]) -> str:
    """Return the versions in words; the first is the default."""
    return f"JetPack {' or '.join(map(str, numbers))}"


def _simulate(args: argparse.Namespace) -> int:
    from powerlab.boards.simulator import create_tree
    from powerlab.boards.simulator.faults.control import check, set_fault
    from powerlab.boards.simulator.loop import run as move_sensors
    from powerlab.sysroot import Sysroot

    check(args.name, args.fault)
    create_tree(args.name, args.directory, args.jetpack)
    for name in args.fault:
        set_fault(Sysroot(args.directory), name)
    print(f"wrote a simulated {args.name} to {args.directory}; use it with --sysroot {args.directory}")
    if args.run:
        try:
            move_sensors(
                args.directory,
                going_on=lambda: True,
                ready=lambda: print("sensors are live; Ctrl-C stops them", flush=True),
            )
        except KeyboardInterrupt:
            print("stopped; the directory is kept")
    return 0
