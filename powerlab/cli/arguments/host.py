"""``--board`` and ``--sysroot``: which device a command is about."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from powerlab.sweep.host import Host


def add_host_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the two options, of which one at most may be given."""
    which = parser.add_argument_group("where").add_mutually_exclusive_group()
    which.add_argument(
        "--board", metavar="NAME", help="a simulated board instead of this machine (see powerlab boards)"
    )
    which.add_argument("--sysroot", metavar="DIR", type=Path, help="read sensors and set modes below DIR instead of /")


@contextmanager
def open_host(args: argparse.Namespace) -> Iterator[Host]:
    """Yield the device that the options name; a simulated board runs as long as the context is open.

    Raises:
        PowerlabError: there is no such board or directory.
    """
    from powerlab.domain.errors import PowerlabError
    from powerlab.sweep.opened import opened_host

    root = args.sysroot or Path("/")
    if not root.is_dir():
        raise PowerlabError(f"--sysroot {root} is no directory; give the root of a device's file tree.")
    with opened_host(args.board, root) as host:
        yield host
