"""``--from`` and the filters: where a command reads, and which stored runs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

WHERE = "a server's URL, a database (file or URL), or a results file of `powerlab profile`"


class _Once(argparse.Action):
    """Stores a value that may be given once, under whichever of its names."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(f"{option_string}: a command reads one source; give one of {', '.join(self.option_strings)}")
        setattr(namespace, self.dest, values)


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--from``, which :func:`powerlab.cli.stored.open_source.open_source` reads, and its other names."""
    parser.add_argument(
        "--from",
        "--database",
        "--server",
        dest="read_from",
        metavar="URL|FILE",
        action=_Once,
        help=f"read {WHERE} (default: the server POWERLAB_SERVER if set, else the local database)",
    )


def add_filter_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run filters."""
    parser.add_argument("--sweep", metavar="SWEEP", help="only runs of this sweep or campaign; first digits suffice")
    parser.add_argument("--model", help="only runs of this model")
    parser.add_argument("--verdict", choices=("valid", "flagged", "void", "failed"), help="only runs with this verdict")
