"""A server in a thread whose leases are short, so that an agent hears soon that its job was paused."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import uvicorn

from fresh_store import fresh_store
from powerlab.store import Store
from powerlab_api.app import create_app
from powerlab_api.settings import Settings

LEASE_S = 1.0


@contextmanager
def quick_server(database: Path) -> Iterator[tuple[str, Store]]:
    """Yield the address of a server, and its store."""
    with closing(fresh_store(database)) as store:
        app = create_app(store, Settings(lease_s=LEASE_S))
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}", store
        finally:
            server.should_exit = True
            thread.join()
