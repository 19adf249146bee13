"""An application behind a real socket, for as long as a test needs it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI

_PATIENCE_S = 60.0


@contextmanager
def served(app: FastAPI, scheme: str = "http", **options: Any) -> Iterator[str]:
    """Serve on a port of loopback, a free one unless it is given, and yield the address; ``options`` are uvicorn's."""
    usual = {"port": 0, "log_level": "error", "lifespan": "off", "timeout_graceful_shutdown": 2}
    config = uvicorn.Config(app, host="127.0.0.1", **(usual | options))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.02)
        assert thread.is_alive(), "the server did not start"
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"{scheme}://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(_PATIENCE_S)
    assert not thread.is_alive(), "the server does not end"
