"""``powerlab devices``: bookings."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from rich.text import Text

from powerlab.analysis.wording import counted
from powerlab.cli import EXIT_OK
from powerlab.cli.arguments.server import connect
from powerlab.cli.commands.sweep.requests import find_device
from powerlab.cli.output.console import plain_table, print_neatly, table_console
from powerlab.cli.stored.said import say
from powerlab.client.labs import Labs
from powerlab.domain.errors import PowerlabError
from powerlab.protocol.bookings import BookingKind, BookingRecord, BookingRequest
from powerlab.protocol.wire import encode
from powerlab.sources.server import ServerSource


def reserve(args: argparse.Namespace) -> int:
    """Reserve a device."""
    return _book(args, BookingKind.RESERVATION, args.holder or "")


def maintain(args: argparse.Namespace) -> int:
    """Block all sweeps on a device for a period."""
    return _book(args, BookingKind.MAINTENANCE, "")


def _book(args: argparse.Namespace, kind: BookingKind, holder: str) -> int:
    api = connect(args.server)
    request = BookingRequest(
        device_id=find_device(api, args.device).id,
        kind=kind,
        starts_at=datetime.now(UTC) if args.start is None else _moment("--from", args.start),
        ends_at=_moment("--to", args.end),
        holder=holder,
        reason=args.reason,
    )
    made = Labs(api.transport).book(request)
    print(encode(made).decode() if args.json else f"booking {made.id}: {made.device_name}, {_words(made)}")
    return EXIT_OK


def list_bookings(args: argparse.Namespace) -> int:
    """List current and future bookings."""
    api = connect(args.server)
    device_id = None if args.device is None else find_device(api, args.device).id
    found = list(Labs(api.transport).bookings(device_id=device_id, ends_after=datetime.now(UTC)))
    say(ServerSource(api), counted(len(found), "booking"))
    if args.json:
        print(encode(found).decode())
        return EXIT_OK
    table = plain_table("booking", "device", "kind and period", "reason")
    for one in found:
        table.add_row(str(one.id), Text(one.device_name), Text(_words(one)), Text(one.reason))
    print_neatly(table_console(), table)
    return EXIT_OK


def unbook(args: argparse.Namespace) -> int:
    """Cancel a booking."""
    Labs(connect(args.server).transport).unbook(args.booking)
    print(encode({"id": args.booking}).decode() if args.json else f"cancelled booking {args.booking}")
    return EXIT_OK


def _words(one: BookingRecord) -> str:
    whose = f" for {one.holder}" if one.holder else ""
    return f"{one.kind}{whose} from {one.starts_at:%Y-%m-%d %H:%M} to {one.ends_at:%Y-%m-%d %H:%M} UTC"


def _moment(option: str, text: str) -> datetime:
    """Return a time; without a UTC offset it is local time."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise PowerlabError(
            f"invalid {option} {text!r}: write a time as 2026-01-31T08:00 or 2026-01-31T08:00+01:00."
        ) from error
