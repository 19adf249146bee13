"""``powerlab serve``: the API and the dashboards over one database."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from powerlab.cli.arguments.retention import add_keep_options, months_to_keep

DESCRIPTION = """\
Serve the REST API under /api/v1 and the dashboards under /. The database is created if it is missing. On loopback,
without POWERLAB_OPERATOR_TOKEN and --behind-proxy, no token is required. Otherwise every request requires one, reads
too; the first admin uses POWERLAB_OPERATOR_TOKEN, or a token from `powerlab tokens create --database`.
"""

EPILOG = """\
exit status: 0 stopped by Ctrl-C or SIGTERM; 2 the port is taken, the database or the certificate cannot be used,
there is no token to log in with, or the server extra is missing

environment:
  POWERLAB_DATABASE         database (overridden by --database)
  POWERLAB_TRACES           trace store (overridden by --traces)
  POWERLAB_TRACES_QUERY     reads trace files: duckdb (default) or clickhouse://USER:PASSWORD@HOST
  POWERLAB_OPERATOR_TOKEN   an admin's token, in addition to those in the database

examples:
  powerlab serve
  powerlab tokens create alice --role admin --database postgresql://powerlab@db/powerlab
  powerlab serve --database postgresql://powerlab@db/powerlab --host 0.0.0.0 \\
                 --tls-cert server.pem --tls-key server.key
  powerlab serve --behind-proxy 127.0.0.1
"""
DEFAULT_PORT = 8765
_LONGEST_LEASE_S = 3600


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--port", type=int, default=DEFAULT_PORT, help=f"port to listen on; 0 for a free one (default: {DEFAULT_PORT})"
    )
    parser.add_argument(
        "--database",
        metavar="PATH_OR_URL",
        help="a file, or postgresql://user@host/name (default: the local database that powerlab profile writes to)",
    )
    parser.add_argument(
        "--traces",
        metavar="URL",
        help="trace store: database (the default), file:///FOLDER or s3://BUCKET/PREFIX?endpoint=URL&region=NAME",
    )
    parser.add_argument(
        "--max-model-mb", type=int, default=2048, metavar="MB", help="largest model accepted (default: 2048)"
    )
    parser.add_argument(
        "--lease-s",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="how long a silent agent keeps its job (default: 60)",
    )
    add_keep_options(parser)
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="TLS certificate, with its chain")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="private key of the certificate")
    parser.add_argument(
        "--behind-proxy",
        metavar="ADDRESSES",
        help="comma-separated addresses or networks of proxies whose X-Forwarded-For and -Proto are trusted",
    )


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    import importlib.util

    from powerlab.domain.errors import PowerlabError

    if importlib.util.find_spec("fastapi") is None:
        raise PowerlabError("a server needs the server extra; install it with `pip install 'powerlab[server]'`.")
    from powerlab.cli.commands.serve.listen_policy import ListenPolicy
    from powerlab.cli.commands.serve.server import serve
    from powerlab.cli.stored.local_database import new_default_store
    from powerlab.sources.trace_store import open_trace_store
    from powerlab.store import open_store

    if not 1 <= args.lease_s <= _LONGEST_LEASE_S:
        raise PowerlabError(f"--lease-s {args.lease_s:g} is not a valid lease; give 1 to {_LONGEST_LEASE_S} seconds.")
    if args.max_model_mb < 1:
        raise PowerlabError(f"--max-model-mb {args.max_model_mb} would reject every model; give 1 or more.")
    keep = months_to_keep(args)
    listen_policy = ListenPolicy.from_arguments(
        args.host, args.tls_cert, args.tls_key, args.behind_proxy, os.environ.get("POWERLAB_OPERATOR_TOKEN") or None
    )
    address = args.database or os.environ.get("POWERLAB_DATABASE")
    store = open_store(address or new_default_store(), traces=open_trace_store(args.traces))
    max_model_bytes = args.max_model_mb << 20
    return serve(store, listen_policy, args.port, max_model_bytes=max_model_bytes, lease_s=args.lease_s, keep=keep)
