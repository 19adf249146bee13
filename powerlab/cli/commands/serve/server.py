"""Runs the server process: one socket, one application, one sentence where something is in the way."""

from __future__ import annotations

import gc
import os
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from types import FrameType

import uvicorn
from fastapi import FastAPI

from powerlab.cli import EXIT_OK
from powerlab.cli.commands.serve.listen_policy import ListenPolicy
from powerlab.domain.errors import PowerlabError
from powerlab.protocol.messages import EnrolmentCodeRequest
from powerlab.store import Store
from powerlab.store.maintenance.summary_worker import kept_summed
from powerlab.store.maintenance.worker import kept_up
from powerlab.store.reads.tokens import has_admin
from powerlab.store.tables.retirement import Kind
from powerlab.store.traces.compaction_worker import kept_compact
from powerlab.store.writes.devices import make_enrolment_code
from powerlab_api.app import create_app
from powerlab_api.event_stream import Streams
from powerlab_api.metrics.pushing import pushed
from powerlab_api.settings import LOOPBACK_NAMES, Settings
from powerlab_dashboards.compression import CompressedPages
from powerlab_dashboards.problem_pages import ProblemPages
from powerlab_dashboards.router import create_router

_GRACE_S = 5


def serve(
    store: Store,
    listen_policy: ListenPolicy,
    port: int,
    *,
    max_model_bytes: int,
    lease_s: float,
    keep: Mapping[Kind, int],
) -> int:
    """Serve until Ctrl-C or SIGTERM; what is older than ``keep`` says, in months, goes meanwhile.

    Raises:
        PowerlabError: the address cannot be had, or is open to others while nobody has an admin's token.
    """
    with closing(store), _signals_remembered() as stop:
        _check_somebody_can_log_in(store, listen_policy)
        with closing(_listen(listen_policy.host, port)) as listener:
            address = _address(listener, "http" if listen_policy.tls is None else "https")
            print(f"powerlab serves {store.address} at {address}", flush=True)
            print(_what_next(store, listen_policy, address), flush=True)
            settings = replace(settings_of(listen_policy), max_model_bytes=max_model_bytes, lease_s=lease_s)
            app = compose(store, settings)
            settle()
            with (
                pushed(app.state.metrics.registry, os.environ),
                kept_compact(store),
                kept_up(store, keep),
                kept_summed(store),
            ):
                _Server(_configured(app, listen_policy), app.state.event_streams, stop).run(sockets=[listener])
    return EXIT_OK


class _Server(uvicorn.Server):
    """Ends streams of events in order when it is told to end; their readers would keep it waiting."""

    def __init__(self, config: uvicorn.Config, streams: Streams, stop: _Stop) -> None:
        super().__init__(config)
        self._streams = streams
        self._stop = stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and end at once if a signal came before."""
        await super().startup(sockets)
        self.should_exit = self.should_exit or self._stop.requested

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Do as uvicorn does, and let every stream come to its end."""
        self._streams.closing = True
        super().handle_exit(sig, frame)


class _Stop:
    """A signal handler that remembers that the server shall end."""

    requested = False

    def __call__(self, *_: object) -> None:
        self.requested = True


@contextmanager
def _signals_remembered() -> Iterator[_Stop]:
    """Remember SIGTERM and SIGINT while the server starts, where an exception would cut a thread's start short.

    Once it runs, uvicorn handles them; at its end it raises them again, and they shall not be errors then.
    """
    stop = _Stop()
    previous = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def settle() -> None:
    """Leave what is there by now out of all later garbage collections, which would look at it while requests wait."""
    gc.collect()
    gc.freeze()


def compose(store: Store, settings: Settings) -> FastAPI:
    """Return the API and, behind it, the dashboards."""
    app = create_app(store, settings)
    app.include_router(create_router(store, app.state.authority))
    app.add_middleware(ProblemPages)
    app.add_middleware(CompressedPages)
    return app


def settings_of(listen_policy: ListenPolicy) -> Settings:
    """Return how a server behaves that can be reached like this."""
    return Settings(
        operator_token=listen_policy.operator_token,
        login_needed=listen_policy.login_needed,
        # A server on loopback answers to its own names only, so that no page of another site gets at it by a name of
        # its own; behind a proxy it is asked by the proxy's name, and asks everybody for a token.
        allowed_hosts=LOOPBACK_NAMES if listen_policy.local else frozenset(),
    )


def _configured(app: FastAPI, listen_policy: ListenPolicy) -> uvicorn.Config:
    certificate, key = listen_policy.tls or (None, None)
    return uvicorn.Config(
        app,
        log_level="warning",
        timeout_graceful_shutdown=_GRACE_S,
        lifespan="off",
        server_header=False,
        proxy_headers=bool(listen_policy.proxies),
        forwarded_allow_ips=list(listen_policy.proxies),
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )


def _check_somebody_can_log_in(store: Store, listen_policy: ListenPolicy) -> None:
    if listen_policy.local or listen_policy.operator_token is not None:
        return
    with store.session() as session:
        if has_admin(session, store.clock()):
            return
    raise PowerlabError(
        f"{listen_policy.host} can be reached by others, and nobody has an admin's token yet; make one with `powerlab "
        "tokens create NAME --role admin --database DATABASE`, set POWERLAB_OPERATOR_TOKEN, or listen on 127.0.0.1."
    )


def _what_next(store: Store, listen_policy: ListenPolicy, address: str) -> str:
    """Return how to go on; a code stands there only where nobody else can use it, for the output may be a log."""
    if listen_policy.login_needed:
        return f"log in at {address}/login; enrolment codes for devices come from: powerlab tokens code"
    with store.write() as session:
        code = make_enrolment_code(session, EnrolmentCodeRequest(), store.clock()).code
    return f"enrol a device within the hour: powerlab agent enrol --server {address} --code {code}"


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
            f"port {port} of {host} cannot be used ({reason}); stop what uses it, or choose another with --port."
        ) from error
    return listener


def _address(listener: socket.socket, scheme: str) -> str:
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
