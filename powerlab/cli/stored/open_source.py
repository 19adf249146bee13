"""Opens what ``--from`` names; by default the server of POWERLAB_SERVER, else what this machine has measured."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing, contextmanager

from powerlab.sources.opening import address_of_environment, open_address
from powerlab.sources.source import Source


@contextmanager
def open_source(args: argparse.Namespace) -> Iterator[Source]:
    """Open the source that the options name, and close it at the end.

    Raises:
        PowerlabError: there is no such source, or it cannot be used.
    """
    with closing(open_address(args.read_from)) as source:
        yield source


def address_from(args: argparse.Namespace) -> str | None:
    """Return the address that the options or the environment name; None for what this machine has measured."""
    return args.read_from or address_of_environment()
