"""``--board`` and ``--sysroot``: the device that a command works on."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from powerlab.sweep.host import Host


def add_host_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the two options, which exclude each other."""
    which = parser.add_argument_group("device").add_mutually_exclusive_group()
    which.add_argument(
        "--board", metavar="NAME", help="use a simulated board instead of this machine (see powerlab boards)"
    )
    which.add_argument(
        "--sysroot", metavar="DIR", type=Path, help="use DIR instead of / as the root of sensors and power modes"
    )


def host_options(args: argparse.Namespace) -> str:
    """Return the options again that name the device and the database, each after a blank; empty for the usual ones."""
    given = (("--board", args.board), ("--sysroot", args.sysroot), ("--database", args.database))
    return "".join(f" {option} {shlex.quote(str(value))}" for option, value in given if value is not None)


@contextmanager
def open_host(args: argparse.Namespace) -> Iterator[Host]:
    """Open the device that the options name; a simulated board runs while the context is open.

    Raises:
        PowerlabError: there is no such board or directory.
    """
    from powerlab.domain.errors import PowerlabError
    from powerlab.sweep.opened import opened_host

    root = args.sysroot or Path("/")
    if not root.is_dir():
        raise PowerlabError(f"--sysroot {root} is not a directory; give the root of a device's file tree.")
    with opened_host(args.board, root) as host:
        yield host
