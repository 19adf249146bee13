"""``powerlab sweep``: sweeps on a server."""

from __future__ import annotations

import argparse

from powerlab.cli.arguments.devices import add_selector_arguments
from powerlab.cli.arguments.plan import add_plan_arguments
from powerlab.cli.arguments.server import add_server_argument

DESCRIPTION = "Create a sweep for a device or preview it; list, show, watch and change sweeps."

EPILOG = """\
exit status: 0 done; 1 a watched sweep failed or was cancelled, or a previewed one cannot be carried out; 2 the
request cannot be carried out, one sentence says why

examples:
  powerlab sweep preview resnet50 --device xavier-3 --threads 1,2,4 --modes MAXN,MODE_15W
  powerlab sweep create resnet50 --device xavier-3 --threads 1,2,4 --modes MAXN,MODE_15W
  powerlab sweep create resnet50 --any --board jetson-orin-nano --label rack=3
  powerlab sweep create resnet50 --each board --group nightly
  powerlab sweep list --state running
  powerlab sweep watch SWEEP
  powerlab sweep pause SWEEP
  powerlab sweep clone SWEEP --set threads=[8] --set duration_s=30
"""
_STATES = ("queued", "running", "paused", "cancelled", "done", "failed")
_MODEL = "a zoo name, the path of an ONNX file there, or a model of the server (powerlab models)"
_PREVIEW = "Say what a sweep would be: its runs, how long they take, and all that speaks against it. Nothing is stored."
_ONE = {
    "show": ("state and table of a sweep", "Show a sweep's state and table."),
    "watch": (
        "follow a sweep until it is over, then show it",
        "Follow a sweep until it is over, then show its state and table.",
    ),
    "pause": (
        "stop a sweep after its run in progress",
        "Stop a sweep until it is resumed. Its device ends the run in progress first; the runs that there are stay.",
    ),
    "resume": ("let a paused sweep go on", "Let a paused sweep go on; only what is missing is measured."),
    "cancel": (
        "end a sweep for good",
        "End a sweep for good. Its device ends the run in progress first; the runs that there are stay.",
    ),
    "clone": (
        "ask for a sweep once more",
        "Queue a sweep's plan once more, with other values for some of its fields, or on another device.",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    create = actions.add_parser("create", help="queue a sweep for a device", description="Queue a sweep for a device.")
    preview = actions.add_parser("preview", help="what a sweep would be", description=_PREVIEW)
    for action in (create, preview):
        add_plan_arguments(action, _MODEL)
        action.add_argument("--device", metavar="NAME", help="the device's name or id (default: the only one there is)")
        several = action.add_argument_group("instead of --device, several of those that these words choose")
        several.add_argument("--any", action="store_true", help="one sweep, on the first of them that is free")
        several.add_argument("--each", choices=("board", "device"), help="one sweep on each, or on one of each board")
        add_selector_arguments(several)
    listed = actions.add_parser("list", help="newest first", description="List sweeps, the newest first.")
    listed.add_argument("--device", metavar="NAME", help="only this device's")
    listed.add_argument("--state", choices=_STATES, help="only those that stand so")
    listed.add_argument("--model", help="only those of this model")
    listed.add_argument("--campaign", metavar="ID", help="only those of this campaign")
    one = {name: actions.add_parser(name, help=words[0], description=words[1]) for name, words in _ONE.items()}
    for action in one.values():
        action.add_argument("sweep", metavar="SWEEP", help="a sweep's id, or its first digits")
    clone = one["clone"]
    clone.add_argument("--device", metavar="NAME", help="another device's name or id")
    clone.add_argument("--set", metavar="NAME=VALUE", action="append", help="a field of the plan, its value as JSON")
    for action in (create, preview, clone):
        default = "the same" if action is clone else "0"
        action.add_argument(
            "--priority", type=int, metavar="N", help=f"-1000 to 1000, the highest comes first (default: {default})"
        )
    for action in (create, preview, listed, *one.values()):
        add_server_argument(action)
        action.add_argument("--json", action="store_true", help="print JSON for machines")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.commands.sweep import changes, requests

    actions = {"create": requests.create, "list": requests.list_all, "show": requests.show, "watch": requests.watch}
    changing = {name: getattr(changes, name) for name in ("preview", "pause", "resume", "cancel", "clone")}
    status: int = (actions | changing)[args.action](args)
    return status
