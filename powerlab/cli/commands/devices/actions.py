"""``powerlab devices``: listing, labels and groups."""

from __future__ import annotations

import argparse

from rich.text import Text

from powerlab.analysis.wording import counted
from powerlab.cli import EXIT_OK
from powerlab.cli.arguments.devices import selector_from
from powerlab.cli.arguments.server import connect
from powerlab.cli.commands.sweep.requests import find_device
from powerlab.cli.output.console import plain_table, print_neatly, table_console
from powerlab.cli.stored.said import say
from powerlab.client.labs import Labs
from powerlab.domain.selector import Selector, parse_label
from powerlab.protocol.records import BacklogRecord, DeviceRecord
from powerlab.protocol.wire import encode
from powerlab.sources.server import ServerSource


def list_all(args: argparse.Namespace) -> int:
    """List devices."""
    api = connect(args.server)
    found = list(api.devices(selector=selector_from(args)))
    say(ServerSource(api), counted(len(found), "device"))
    if args.json:
        print(encode(found).decode())
        return EXIT_OK
    table = plain_table("device", "board", "labels", "runs to upload", "last seen")
    for one in found:
        board = f"{one.device.board} (simulated)" if one.device.simulated else one.device.board
        heard = f"{one.seen_at:%Y-%m-%d %H:%M} UTC"
        table.add_row(Text(one.device.name), Text(board), Text(" ".join(one.labels)), waiting(one.backlog), heard)
    print_neatly(table_console(), table)
    return EXIT_OK


def waiting(backlog: BacklogRecord | None) -> str:
    """Return how many runs a device has yet to upload, and problems with them; an unknown count is not 0."""
    if backlog is None:
        return "unknown"
    refused = f", {backlog.refused_runs} rejected" if backlog.refused_runs else ""
    shed = f", {backlog.shed_runs} without traces" if backlog.shed_runs else ""
    since = f" since {backlog.oldest_since:%Y-%m-%d %H:%M} UTC" if backlog.oldest_since is not None else ""
    return f"{backlog.runs}{since}{refused}{shed}"


def label(args: argparse.Namespace) -> int:
    """Add labels to a device."""
    api = connect(args.server)
    labels = [parse_label(word) for word in args.labels]
    device = find_device(api, args.device)
    for one in labels:
        device = Labs(api.transport).label(device.id, one)
    return _say(args, device)


def unlabel(args: argparse.Namespace) -> int:
    """Remove labels from a device."""
    api = connect(args.server)
    device = find_device(api, args.device)
    for key in args.labels:
        Labs(api.transport).unlabel(device.id, key)
    return _say(args, api.device(device.id))


def _say(args: argparse.Namespace, device: DeviceRecord) -> int:
    if args.json:
        print(encode(device).decode())
    else:
        print(f"labels of {device.device.name}: {' '.join(device.labels) or 'none'}")
    return EXIT_OK


def list_groups(args: argparse.Namespace) -> int:
    """List groups."""
    api = connect(args.server)
    found = list(Labs(api.transport).groups())
    say(ServerSource(api), counted(len(found), "group"))
    if args.json:
        print(encode(found).decode())
        return EXIT_OK
    table = plain_table("group", "selector")
    for one in found:
        table.add_row(Text(one.name), Text(str(one.selector)))
    print_neatly(table_console(), table)
    return EXIT_OK


def put_group(args: argparse.Namespace) -> int:
    """Define a group, and print its current devices."""
    api = connect(args.server)
    group = Labs(api.transport).put_group(args.name, selector_from(args))
    if args.json:
        print(encode(group).decode())
        return EXIT_OK
    names = ", ".join(one.device.name for one in api.devices(selector=Selector(group=args.name)))
    print(f"group {group.name}: {group.selector}; currently {names or 'no devices'}")
    return EXIT_OK


def remove_group(args: argparse.Namespace) -> int:
    """Delete a group."""
    Labs(connect(args.server).transport).remove_group(args.name)
    print(encode({"name": args.name}).decode() if args.json else f"deleted group {args.name}")
    return EXIT_OK
