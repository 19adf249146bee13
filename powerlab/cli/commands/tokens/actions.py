"""Carries out ``powerlab tokens``, the same way on a server and on a database."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from rich.text import Text

from powerlab.cli import EXIT_OK
from powerlab.cli.commands.tokens.stores import DatabaseTokens, ServerTokens, TokenStore
from powerlab.cli.output.console import plain_table, print_neatly, table_console
from powerlab.domain.errors import PowerlabError
from powerlab.protocol.access import Role, TokenRecord, TokenRequest
from powerlab.protocol.messages import EnrolmentCodeRequest
from powerlab.protocol.wire import encode

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600, "y": 365 * 24 * 3600}


def create(args: argparse.Namespace) -> int:
    """Make a token."""
    request = TokenRequest(name=args.name, role=Role(args.role), valid_s=_seconds(args.valid))
    with _keeper(args) as keeper:
        made = keeper.create(request)
    if args.json:
        print(encode(made).decode())
        return EXIT_OK
    until = "until it is revoked" if made.record.expires_at is None else f"until {_moment(made.record.expires_at)}"
    print(f"token {made.record.id} of {made.record.name}, {made.record.role}, {until}; it is shown this once:")
    print(made.token)
    return EXIT_OK


def list_all(args: argparse.Namespace) -> int:
    """List every token."""
    with _keeper(args) as keeper:
        found = list(keeper.tokens())
    if args.json:
        print(encode(found).decode())
        return EXIT_OK
    table = plain_table("id", "name", "role", "made", "holds until", "last used")
    for one in found:
        table.add_row(
            str(one.id), Text(one.name), one.role, _moment(one.created_at), _end(one), _moment(one.last_used_at)
        )
    print_neatly(table_console(), table)
    return EXIT_OK


def revoke(args: argparse.Namespace) -> int:
    """End a token."""
    with _keeper(args) as keeper:
        token = _find(keeper, args.token)
        keeper.revoke(token.id)
    if args.json:
        print(encode({"id": token.id, "name": token.name}).decode())
    else:
        print(f"token {token.id} of {token.name} is revoked")
    return EXIT_OK


def make_code(args: argparse.Namespace) -> int:
    """Make an enrolment code."""
    with _keeper(args) as keeper:
        code = keeper.make_code(EnrolmentCodeRequest(device_id=args.device))
    print(encode(code).decode() if args.json else code.code)
    return EXIT_OK


@contextmanager
def _keeper(args: argparse.Namespace) -> Iterator[TokenStore]:
    if args.database is None:
        yield ServerTokens(args.server)
        return
    with DatabaseTokens.opened(args.database) as keeper:
        yield keeper


def _find(keeper: TokenStore, wanted: str) -> TokenRecord:
    """Return the token of that name that was not revoked, or else of that id."""
    found = list(keeper.tokens())
    for one in found:
        if one.name == wanted and one.revoked_at is None:
            return one
    for one in found:
        if str(one.id) == wanted:
            return one
    raise PowerlabError(f"there is no token {wanted!r} in force; `powerlab tokens list` shows them.")


def _seconds(duration: str | None) -> int | None:
    if duration is None:
        return None
    found = re.fullmatch(r"([1-9][0-9]{0,8})([smhdy])", duration)
    if found is None:
        raise PowerlabError(f"--valid {duration!r} is not a time; write an integer and s, m, h, d or y, as in 90d.")
    return int(found[1]) * _SECONDS[found[2]]


def _end(token: TokenRecord) -> str:
    if token.revoked_at is not None:
        return f"revoked {_moment(token.revoked_at)}"
    return "it is revoked" if token.expires_at is None else _moment(token.expires_at)


def _moment(moment: datetime | None) -> str:
    return "never" if moment is None else f"{moment:%Y-%m-%d %H:%M}"
