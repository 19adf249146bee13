"""``powerlab sweep``: sweeps on a server."""

from __future__ import annotations

import argparse

from powerlab.cli.plans import add_plan_arguments
from powerlab.cli.server_api import add_server_argument

_EPILOG = """\
exit status: 0 done; 1 a watched sweep failed; 2 the request cannot be carried out, one sentence says why

examples:
  powerlab sweep create resnet50 --device xavier-3 --threads 1,2,4 --modes MAXN,MODE_15W
  powerlab sweep list
  powerlab sweep watch SWEEP
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "sweep",
        help="create and follow sweeps on a server",
        description="Create a sweep for a device, list sweeps, show a sweep's table, or watch one until it is over.",
        epilog=_EPILOG,
    )
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    create = actions.add_parser("create", help="queue a sweep for a device", description="Queue a sweep for a device.")
    add_plan_arguments(create, "a zoo name, the path of an ONNX file there, or a model of the server (powerlab models)")
    create.add_argument("--device", metavar="NAME", help="the device's name or id (default: the only one there is)")
    listed = actions.add_parser("list", help="newest first", description="List every sweep, the newest first.")
    show = actions.add_parser("show", help="state and table of a sweep", description="Show a sweep's state and table.")
    watch = actions.add_parser(
        "watch",
        help="follow a sweep until it is over, then show it",
        description="Follow a sweep until it is over, then show its state and table.",
        epilog="exit status: 0 the sweep is done; 1 it failed; 2 the request cannot be carried out; 130 interrupted",
    )
    for action in (show, watch):
        action.add_argument("sweep", metavar="SWEEP", help="a sweep's id, or its first digits")
    for action in (create, listed, show, watch):
        add_server_argument(action)
        action.add_argument("--json", action="store_true", help="print JSON for machines")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli import sweeping

    actions = {"create": sweeping.create, "list": sweeping.list_all, "show": sweeping.show, "watch": sweeping.watch}
    return actions[args.action](args)
