"""``powerlab devices``: the devices of a server, and what their lab says of them."""

from __future__ import annotations

import argparse

from powerlab.cli.servers import add_server_argument

_DESCRIPTION = """\
List the devices of a server, label them, and name groups of them: what has labels can be chosen by them.
"""

_EPILOG = """\
exit status: 0 done; 2 the request cannot be carried out, one sentence says why

examples:
  powerlab devices label nano-1 rack=3 fan
  powerlab devices list --label rack=3
  powerlab devices unlabel nano-1 fan
  powerlab devices group rack-3-nanos --board jetson-orin-nano --label rack=3
  powerlab devices list --group rack-3-nanos
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "devices", help="label and group the devices of a server", description=_DESCRIPTION, epilog=_EPILOG
    )
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
    for action in (listed, label, unlabel, groups, group, ungroup):
        add_server_argument(action)
        action.add_argument("--json", action="store_true", help="print JSON for machines")


def add_selector_arguments(parser: argparse._ActionsContainer) -> None:
    """Add the words of which :func:`powerlab.cli.selecting.selector_from` makes a selector."""
    parser.add_argument("--board", metavar="BOARD", default="", help="only of this board, as powerlab boards names it")
    parser.add_argument("--label", metavar="LABEL", action="append", help="only with KEY=VALUE or KEY; may be repeated")
    parser.add_argument("--group", metavar="NAME", default="", help="only of this group")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli import device_handling

    actions = {
        "list": device_handling.list_all,
        "label": device_handling.label,
        "unlabel": device_handling.unlabel,
        "groups": device_handling.list_groups,
        "group": device_handling.put_group,
        "ungroup": device_handling.remove_group,
    }
    return actions[args.action](args)
