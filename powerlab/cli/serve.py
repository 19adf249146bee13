"""``powerlab serve``: the API and the dashboards over one database."""

from __future__ import annotations

import argparse
import os

_DESCRIPTION = """\
Serve the REST API under /api/v1 and the dashboards under /, over a database that is made where it is missing. Bound to
loopback it asks nobody for a login. Bound to anything else it needs POWERLAB_OPERATOR_TOKEN in its environment, which
clients must send to create sweeps and enrolment codes; reading stays open, so put a proxy with TLS and a login in
front. Agents always prove themselves with the token of their enrolment.
"""

_EPILOG = """\
exit status: 0 stopped by Ctrl-C or SIGTERM; 2 the port is taken, the database cannot be used, or the
server extra is missing

environment:
  POWERLAB_DATABASE         the database, unless --database says so
  POWERLAB_OPERATOR_TOKEN   what clients must send to create sweeps and enrolment codes

examples:
  powerlab serve
  powerlab serve --database postgresql://powerlab@db/powerlab --host 0.0.0.0
"""
DEFAULT_PORT = 8765


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "serve",
        help="the server with its dashboards",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"0 takes a free one (default: {DEFAULT_PORT})")
    parser.add_argument(
        "--database",
        metavar="PATH_OR_URL",
        help="a file, or postgresql://user@host/name (default: the local database that powerlab profile writes to)",
    )
    parser.add_argument(
        "--max-model-mb", type=int, default=2048, metavar="MB", help="largest model that is taken (default: 2048)"
    )


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    import importlib.util

    from powerlab.domain.errors import PowerlabError

    if importlib.util.find_spec("fastapi") is None:
        raise PowerlabError("a server needs the server extra; install it with `pip install 'powerlab[server]'`.")
    from powerlab.cli.local_store import new_default_store
    from powerlab.cli.serving import serve
    from powerlab.store import open_store

    address = args.database or os.environ.get("POWERLAB_DATABASE")
    store = open_store(address or new_default_store())
    token = os.environ.get("POWERLAB_OPERATOR_TOKEN")
    return serve(store, args.host, args.port, token, max_model_bytes=args.max_model_mb << 20)
