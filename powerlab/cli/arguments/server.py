"""``--server``, or ``--from`` where a command only reads: the server it talks to, and the token it sends."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from powerlab.client import Client

DEFAULT_SERVER = "http://127.0.0.1:8765"


def add_server_argument(parser: argparse.ArgumentParser, *, reads: bool = False) -> None:
    """Add ``--server``; with ``reads`` also ``--from``, as other commands that read have it."""
    parser.add_argument(
        *(("--from", "--server") if reads else ("--server",)),
        dest="server",
        metavar="URL",
        default=os.environ.get("POWERLAB_SERVER", DEFAULT_SERVER),
        help=f"server URL (default: POWERLAB_SERVER, or {DEFAULT_SERVER})",
    )


def connect(server: str, token: str | None = None) -> Client:
    """Return a client that sends this token, or else POWERLAB_TOKEN from the environment."""
    from powerlab.client import Client

    return Client(server, token or os.environ.get("POWERLAB_TOKEN"))
