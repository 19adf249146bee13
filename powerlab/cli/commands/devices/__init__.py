"""``powerlab devices``: the devices of a server, and what their lab says of them."""

from __future__ import annotations

import argparse

from powerlab.cli.arguments.devices import add_selector_arguments
from powerlab.cli.arguments.server import add_server_argument

DESCRIPTION = """\
List the devices of a server, label them, and name groups of them: what has labels can be chosen by them. Reserve
devices, and keep sweeps from them while they are maintained.
"""

EPILOG = """\
exit status: 0 done; 2 the request cannot be carried out, one sentence says why

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
    listed = actions.add_parser("list", help="by name", description="List devices with their labels, by name.")
    add_selector_arguments(listed)
    label = actions.add_parser(
        "label", help="give a device labels", description="Give a device labels, in place of those with the same keys."
    )
    label.add_argument("device", metavar="DEVICE", help="the device's name or id")
    label.add_argument("labels", metavar="LABEL", nargs="+", help="KEY=VALUE, or a word alone")
    unlabel = actions.add_parser("unlabel", help="take labels away", description="Take labels from a device.")
    unlabel.add_argument("device", metavar="DEVICE", help="the device's name or id")
    unlabel.add_argument("labels", metavar="KEY", nargs="+", help="the label's key, or the word")
    groups = actions.add_parser("groups", help="list groups", description="List groups and what they choose.")
    group = actions.add_parser(
        "group", help="name a group", description="Name all devices of a board, with labels, in place of an old group."
    )
    group.add_argument("name", metavar="NAME", help="the group's name")
    group.add_argument("--board", metavar="BOARD", default="", help="as powerlab boards names it")
    group.add_argument("--label", metavar="LABEL", action="append", help="KEY=VALUE or a key; may be repeated")
    ungroup = actions.add_parser("ungroup", help="forget a group", description="Forget a group; its devices stay.")
    ungroup.add_argument("name", metavar="NAME", help="the group's name")
    reserve = actions.add_parser(
        "reserve",
        help="for somebody's sweeps alone",
        description="Give a device to somebody's sweeps alone for a time.",
    )
    reserve.add_argument("--for", metavar="NAME", dest="holder", help="whose sweeps (default: your own)")
    maintain = actions.add_parser(
        "maintain", help="for no sweeps at all", description="Keep all sweeps from a device for a time."
    )
    for action in (reserve, maintain):
        action.add_argument("device", metavar="DEVICE", help="the device's name or id")
        action.add_argument("--from", metavar="TIME", dest="start", help="such as 2026-01-31T08:00 (default: now)")
        action.add_argument("--to", metavar="TIME", dest="end", required=True, help="the first moment after it")
        action.add_argument("--reason", metavar="WORDS", default="", help="for people")
    bookings = actions.add_parser(
        "bookings", help="reservations and maintenance", description="List bookings that are not over, the next first."
    )
    bookings.add_argument("--device", metavar="NAME", help="only this device's")
    unbook = actions.add_parser("unbook", help="remove a booking", description="Remove a booking.")
    unbook.add_argument("booking", metavar="BOOKING", type=int, help="its number")
    for action in (listed, label, unlabel, groups, group, ungroup, reserve, maintain, bookings, unbook):
        add_server_argument(action)
        action.add_argument("--json", action="store_true", help="print JSON for machines")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.commands.devices import actions as device_handling
    from powerlab.cli.commands.devices import bookings as booking

    actions = {
        "list": device_handling.list_all,
        "label": device_handling.label,
        "unlabel": device_handling.unlabel,
        "groups": device_handling.list_groups,
        "group": device_handling.put_group,
        "ungroup": device_handling.remove_group,
        "reserve": booking.reserve,
        "maintain": booking.maintain,
        "bookings": booking.list_bookings,
        "unbook": booking.unbook,
    }
    return actions[args.action](args)
