"""Runs the server process: one socket, one application, one sentence where something is in the way."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
from contextlib import closing, suppress
from dataclasses import replace

import uvicorn
from fastapi import FastAPI

from powerlab.cli import EXIT_OK
from powerlab.domain.errors import PowerlabError
from powerlab.protocol.messages import EnrolmentCodeRequest
from powerlab.store import Store
from powerlab.store.writes.devices import make_enrolment_code
from powerlab_api.app import create_app
from powerlab_api.metrics.pushing import pushed
from powerlab_api.settings import LOOPBACK_NAMES, Settings
from powerlab_dashboards.router import create_router

_GRACE_S = 5


def serve(store: Store, host: str, port: int, operator_token: str | None, *, max_model_bytes: int) -> int:
    """Serve until Ctrl-C or SIGTERM.

    Raises:
        PowerlabError: the address cannot be had, or is open to others without an operator's token.
    """
    settings = replace(_settings(host, operator_token), max_model_bytes=max_model_bytes)
    # uvicorn ends in order at SIGTERM, and then raises the signal again for whoever was there before it.
    signal.signal(signal.SIGTERM, _interrupt)
    with suppress(KeyboardInterrupt), closing(store), closing(_listen(host, port)) as listener:
        address = _address(listener)
        with store.write() as session:
            code = make_enrolment_code(session, EnrolmentCodeRequest(), store.clock()).code
        print(f"powerlab serves {store.address} at {address}", flush=True)
        print(f"enrol a device within the hour: powerlab agent enrol --server {address} --code {code}", flush=True)
        app = compose(store, settings)
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=_GRACE_S, lifespan="off")
        )
        with pushed(app.state.metrics.registry, os.environ):
            server.run(sockets=[listener])
    return EXIT_OK


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def compose(store: Store, settings: Settings) -> FastAPI:
    """Return the API and, behind it, the dashboards."""
    app = create_app(store, settings)
    app.include_router(create_router(store))
    return app


def _settings(host: str, operator_token: str | None) -> Settings:
    if _is_loopback(host):
        return Settings(operator_token=operator_token, allowed_hosts=LOOPBACK_NAMES)
    if not operator_token:
        raise PowerlabError(
            f"{host} can be reached by others; set POWERLAB_OPERATOR_TOKEN to a secret that clients must send to "
            "create sweeps, or listen on 127.0.0.1."
        )
    return Settings(operator_token=operator_token)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    # Without it a port stays taken for a minute after a server ended; it never shares a port with a living one.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) else "a port is a number from 0 to 65535"
        raise PowerlabError(
            f"port {port} of {host} cannot be had ({reason}); stop what uses it, or choose another with --port."
        ) from error
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
