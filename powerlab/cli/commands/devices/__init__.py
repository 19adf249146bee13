"""``powerlab devices``: list, label, group and book the devices of a server."""

from __future__ import annotations

import argparse

from powerlab.cli.arguments.devices import add_selector_arguments
from powerlab.cli.arguments.server import add_server_argument

DESCRIPTION = """\
List the devices of a server, label them, and define groups, so that sweeps can select devices by label or group.
Reserve devices, and keep sweeps off them during maintenance.
"""

EPILOG = """\
exit status: 0 success; 2 invalid request, a message says why

examples:
  powerlab devices label nano-1 rack=3 fan
  powerlab devices list --label rack=3
  powerlab devices unlabel nano-1 fan
  powerlab devices group rack-3-nanos --board jetson-orin-nano --label rack=3
  powerlab devices list --group rack-3-nanos
  powerlab devices reserve nano-1 --from 2026-01-31T08:00 --to 2026-01-31T12:00
  powerlab devices maintain nano-2 --to 2026-02-01T08:00 --reason "new fan"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    listed = actions.add_parser("list", help="list devices", description="List devices with their labels, by name.")
    add_selector_arguments(listed)
    label = actions.add_parser(
        "label",
        help="add labels to a device",
        description="Add labels to a device; a label with the same key is replaced.",
    )
    label.add_argument("device", metavar="DEVICE", help="device name or id")
    label.add_argument("labels", metavar="LABEL", nargs="+", help="KEY=VALUE, or KEY")
    unlabel = actions.add_parser(
        "unlabel", help="remove labels from a device", description="Remove labels from a device."
    )
    unlabel.add_argument("device", metavar="DEVICE", help="device name or id")
    unlabel.add_argument("labels", metavar="KEY", nargs="+", help="the label's key")
    groups = actions.add_parser("groups", help="list groups", description="List groups and their selectors.")
    group = actions.add_parser(
        "group",
        help="define a group",
        description="Define or replace a group: all devices of a board, with these labels.",
    )
    group.add_argument("name", metavar="NAME", help="group name")
    group.add_argument("--board", metavar="BOARD", default="", help="only devices of this board (see powerlab boards)")
    group.add_argument(
        "--label",
        metavar="LABEL",
        action="append",
        help="only devices with this label, KEY=VALUE or KEY; may be repeated",
    )
    ungroup = actions.add_parser("ungroup", help="delete a group", description="Delete a group; its devices stay.")
    ungroup.add_argument("name", metavar="NAME", help="group name")
    reserve = actions.add_parser(
        "reserve",
        help="reserve a device for one user's sweeps",
        description="Reserve a device for one user's sweeps for a period.",
    )
    reserve.add_argument("--for", metavar="NAME", dest="holder", help="whose sweeps (default: yours)")
    maintain = actions.add_parser(
        "maintain", help="block all sweeps for maintenance", description="Block all sweeps on a device for a period."
    )
    for action in (reserve, maintain):
        action.add_argument("device", metavar="DEVICE", help="device name or id")
        action.add_argument(
            "--from", metavar="TIME", dest="start", help="start, such as 2026-01-31T08:00 (default: now)"
        )
        action.add_argument("--to", metavar="TIME", dest="end", required=True, help="end (exclusive)")
        action.add_argument("--reason", metavar="WORDS", default="", help="shown to other users")
    bookings = actions.add_parser(
        "bookings",
        help="list reservations and maintenance",
        description="List current and future bookings, earliest first.",
    )
    bookings.add_argument("--device", metavar="NAME", help="only bookings of this device")
    unbook = actions.add_parser("unbook", help="cancel a booking", description="Cancel a booking.")
    unbook.add_argument("booking", metavar="BOOKING", type=int, help="booking number")
    for action in (listed, label, unlabel, groups, group, ungroup, reserve, maintain, bookings, unbook):
        add_server_argument(action, reads=action in {listed, groups, bookings})
        action.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.commands.devices import actions, bookings

    run_action = {
        "list": actions.list_all,
        "label": actions.label,
        "unlabel": actions.unlabel,
        "groups": actions.list_groups,
        "group": actions.put_group,
        "ungroup": actions.remove_group,
        "reserve": bookings.reserve,
        "maintain": bookings.maintain,
        "bookings": bookings.list_bookings,
        "unbook": bookings.unbook,
    }
    return run_action[args.action](args)
