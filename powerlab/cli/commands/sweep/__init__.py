"""``powerlab sweep``: sweeps on a server."""

from __future__ import annotations

import argparse

from powerlab.cli.arguments.devices import add_selector_arguments
from powerlab.cli.arguments.plan import add_plan_arguments
from powerlab.cli.arguments.server import add_server_argument
from powerlab.cli.arguments.stored_runs import add_source_arguments

DESCRIPTION = "Create a sweep for a device or preview it; list, show, watch and change sweeps."

EPILOG = """\
exit status: 0 success; 1 a watched sweep failed or was cancelled, or a previewed one is not possible; 2 invalid
request; a message says why and what to do

examples:
  powerlab sweep preview resnet50 --device xavier-3 --threads 1,2,4 --modes MAXN,MODE_15W
  powerlab sweep create resnet50 --device xavier-3 --threads 1,2,4 --modes MAXN,MODE_15W
  powerlab sweep create resnet50 --any --board jetson-orin-nano --label rack=3
  powerlab sweep create resnet50 --each board --group nightly
  powerlab sweep create resnet18 --workload train --batch 8 --devices nano-1,nano-2
  powerlab sweep list --state running
  powerlab sweep watch SWEEP
  powerlab sweep pause SWEEP
  powerlab sweep clone SWEEP --set threads=[8] --set duration_s=30
"""
_STATES = ("queued", "running", "paused", "cancelled", "finished", "failed")
_MODEL = "a zoo name, a model of the server (see powerlab models), or the path of an ONNX file on the device"
_PREVIEW = "Show a sweep before creating it: its runs, how long they take, and every problem. Nothing is stored."
_ONE = {
    "show": ("show a sweep's state and table", "Show the state and table of a sweep, or of each sweep of a campaign."),
    "watch": (
        "follow a sweep to its end, then show it",
        "Follow a sweep to its end, then show its state and table.",
    ),
    "pause": (
        "pause a sweep after the current run",
        "Pause a sweep until it is resumed. The device finishes the current run first; finished runs are kept.",
    ),
    "resume": ("resume a paused sweep", "Resume a paused sweep; only missing runs are measured."),
    "cancel": (
        "cancel a sweep after the current run",
        "Cancel a sweep. The device finishes the current run first; finished runs are kept.",
    ),
    "clone": (
        "create a sweep like another",
        "Queue another sweep with the same plan, with some fields changed, or on another device.",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    create = actions.add_parser("create", help="queue a sweep for a device", description="Queue a sweep for a device.")
    preview = actions.add_parser(
        "preview", help="show runs, duration and problems of a sweep before it is created", description=_PREVIEW
    )
    for action in (create, preview):
        add_plan_arguments(action, _MODEL)
        action.add_argument("--device", metavar="NAME", help="device name or id (default: the only device)")
        action.add_argument(
            "--devices", metavar="A,B", help="devices that train together as one, each with its part of every batch"
        )
        several = action.add_argument_group("several devices, instead of --device")
        several.add_argument("--any", action="store_true", help="one sweep, on the first matching device that is free")
        several.add_argument(
            "--each", choices=("board", "device"), help="one sweep on each matching device, or on one of each board"
        )
        add_selector_arguments(several)
    listed = actions.add_parser("list", help="list sweeps, newest first", description="List sweeps, newest first.")
    listed.add_argument("--device", metavar="NAME", help="only sweeps of this device, by name or id")
    listed.add_argument("--state", choices=_STATES, help="only sweeps in this state")
    listed.add_argument("--model", help="only sweeps of this model")
    listed.add_argument("--campaign", metavar="ID", help="only sweeps of this campaign; first digits of its id suffice")
    one = {name: actions.add_parser(name, help=words[0], description=words[1]) for name, words in _ONE.items()}
    for action in one.values():
        action.add_argument("sweep", metavar="SWEEP", help="sweep id, or its first digits")
    clone = one["clone"]
    clone.add_argument("--device", metavar="NAME", help="name or id of another device")
    clone.add_argument("--set", metavar="NAME=VALUE", action="append", help="a field of the plan and its value as JSON")
    for action in (create, preview, clone):
        default = "the same" if action is clone else "0"
        action.add_argument(
            "--priority", type=int, metavar="N", help=f"priority from -1000 to 1000, highest first (default: {default})"
        )
    reading = (listed, one["show"])
    for action in (create, preview, listed, *one.values()):
        (add_source_arguments if action in reading else add_server_argument)(action)
        action.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.commands.sweep import changes, requests

    actions = {"create": requests.create, "list": requests.list_all, "show": requests.show, "watch": requests.watch}
    changing = {name: getattr(changes, name) for name in ("preview", "pause", "resume", "cancel", "clone")}
    status: int = (actions | changing)[args.action](args)
    return status
