"""A server whose leases run out in no time, so that the tests of faults need not wait a minute for that."""

from __future__ import annotations

import argparse
import signal
import socket
import sys

import uvicorn

from powerlab.store import open_store
from powerlab_api.app import create_app
from powerlab_api.settings import Settings

LEASE_S = 0.4


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--database")
    parser.add_argument("--host", default="127.0.0.1")
    args = parser.parse_args()
    app = create_app(open_store(args.database), Settings(lease_s=LEASE_S))
    listener = socket.create_server((args.host, args.port))
    sys.stdout.write(f"serves at http://{args.host}:{args.port}\n\n")
    sys.stdout.flush()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off")).run(sockets=[listener])


if __name__ == "__main__":
    main()
