"""The agent's command line: ``powerlab-agent enrol``, ``powerlab-agent run``; also ``powerlab agent ...``."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.messages import EnrolRequest
from powerlab.state_dir import state_dir
from powerlab.sweep.opened import opened_host
from powerlab_agent.arguments import add_arguments
from powerlab_agent.client import Client, ServerUnreachableError
from powerlab_agent.daemon import Daemon
from powerlab_agent.models import ModelCache
from powerlab_agent.spool import Spool
from powerlab_agent.state import Identity, load_identity, only_agent, save_identity


def run(args: argparse.Namespace) -> int:
    """Carry out a parsed command and return the exit status; raises PowerlabError."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    return _enrol(args) if args.action == "enrol" else _run(args)


def _own_state(args: argparse.Namespace) -> Path:
    return args.state or state_dir() / "agent"


def _enrol(args: argparse.Namespace) -> int:
    with opened_host(args.board, name=args.name) as host:
        device = host.device()
        request = EnrolRequest(code=args.code, device=device, capabilities=host.capabilities())
    try:
        reply = Client(args.server).enrol(request)
    except ServerUnreachableError as error:
        raise PowerlabError(f"{error}; check the address and that the server runs.") from error
    identity = Identity(
        server=args.server,
        device_id=reply.device_id,
        device_name=device.name,
        token=reply.token,
        board=args.board,
    )
    save_identity(_own_state(args), identity)
    sys.stdout.write(f"{device.name} is enrolled as {reply.device_id}; start its agent with: powerlab agent run\n")
    return 0


def _run(args: argparse.Namespace) -> int:
    state = _own_state(args)
    identity = load_identity(state)
    with (
        only_agent(state),
        closing(Spool(state / "spool.db")) as spool,
        opened_host(args.board or identity.board, name=identity.device_name) as host,
    ):
        client = Client(identity.server, identity.token)
        models = ModelCache(client, state / "models", args.models_mb * 1_000_000)
        daemon = Daemon(client=client, host=host, spool=spool, models=models, once=args.once)
        heed_signals(daemon.request_stop)
        with _metrics_shown(args, daemon, state / "spool.db"):
            daemon.run()
        for run_id, reason in spool.refused().items():
            sys.stderr.write(f"powerlab: the run {run_id} stays in {state} because the server refused it: {reason}\n")
    return 0


def _metrics_shown(args: argparse.Namespace, daemon: Daemon, spool: Path) -> AbstractContextManager[object]:
    """Show metrics meanwhile, if asked to; only then is loaded what that takes."""
    if args.metrics_port is None:
        return nullcontext()
    from powerlab_agent.metrics import AgentCollector, served
    from powerlab_agent.spool_size import SpoolSize

    collector = AgentCollector(
        status=daemon.status, contact=daemon.client.contact, spool=SpoolSize(spool), host=daemon.host
    )
    return served(collector, args.metrics_host, args.metrics_port)


def heed_signals(request_stop: Callable[[], None]) -> None:
    """Stop in order when the service manager, a terminal or the end of a session asks for it."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: request_stop())


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``powerlab-agent``."""
    parser = argparse.ArgumentParser(prog="powerlab-agent")
    add_arguments(parser)
    try:
        return run(parser.parse_args(argv))
    except KeyboardInterrupt:
        return 130
    except PowerlabError as error:
        sys.stderr.write(f"powerlab-agent: {error}\n")
        return 2
