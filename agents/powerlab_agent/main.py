"""The agent's command line: ``powerlab-agent enrol``, ``powerlab-agent run``; also ``powerlab agent ...``."""

from __future__ import annotations

import argparse
import logging
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

from powerlab.command_line import Parser
from powerlab.domain.errors import PowerlabError
from powerlab.domain.temperature import TemperatureLimits
from powerlab.protocol.messages import EnrolRequest
from powerlab.protocol.wire import encode
from powerlab.state_dir import state_dir
from powerlab.sweep.host import Host
from powerlab.sweep.opened import opened_host
from powerlab_agent.arguments import add_arguments
from powerlab_agent.client import Client, ServerUnreachableError
from powerlab_agent.daemon import Daemon
from powerlab_agent.device_reader import opened_reader
from powerlab_agent.models import ModelCache
from powerlab_agent.room import MIB, Limits
from powerlab_agent.self_check import CHECKS, Checked, check_self
from powerlab_agent.spool import Spool
from powerlab_agent.spool_size import SpoolSize
from powerlab_agent.state import Identity, load_identity, only_agent, save_identity
from powerlab_agent.telemetry import Telemetry

_READINGS_S = 5.0
"""How long a server may take for readings; the next ones are more recent."""


def run(args: argparse.Namespace) -> int:
    """Carry out a parsed command and return the exit status; raises PowerlabError."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    return {"enrol": _enrol, "run": _run, "check": _check}[args.action](args)


def _own_state(args: argparse.Namespace) -> Path:
    return args.state or state_dir() / "agent"


def _enrol(args: argparse.Namespace) -> int:
    with opened_host(args.board, args.sysroot or Path("/"), name=args.name) as host:
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
        sysroot=None if args.sysroot is None else str(args.sysroot.absolute()),
    )
    save_identity(_own_state(args), identity)
    start = shlex.join(["powerlab", "agent", "run", *(["--state", str(args.state)] if args.state else [])])
    sys.stdout.write(f"{device.name} is enrolled as {reply.device_id}; start its agent with: {start}\n")
    return 0


def _run(args: argparse.Namespace) -> int:
    state = _own_state(args)
    temperatures, identity = _temperature_limits(args), load_identity(state)
    limits = Limits(spool_bytes=args.spool_size * MIB)
    with (
        only_agent(state),
        closing(Spool(state / "spool.db", limits)) as spool,
        _own_host(args, identity) as host,
    ):
        host.may_reboot, host.temperature_limits = args.allow_reboot, temperatures
        client = Client(identity.server, identity.token)
        telemetry = Telemetry(
            Client(identity.server, identity.token, read_s=_READINGS_S),
            lambda streaming: opened_reader(host, streaming=streaming),
        )
        host.announce = telemetry.announce
        checked = Checked(state=state, limits=limits, client=client, host=host)
        daemon = Daemon(
            client=client,
            host=host,
            spool=spool,
            models=ModelCache(client, state / "models", args.models_mb * 1_000_000),
            once=args.once,
            checks=lambda: tuple(check_self(checked)),
            backlog=SpoolSize(state / "spool.db").backlog,
            telemetry=telemetry,
        )
        heed_signals(daemon.request_stop)
        with _metrics_shown(args, daemon, state / "spool.db"), telemetry:
            while daemon.run():
                logging.getLogger("powerlab.agent").info("the simulated board has rebooted: the agent starts again")
        for run_id, refused in spool.refused().items():
            sys.stderr.write(
                f"powerlab: the run {run_id} stays in {state} because the server refused it: {refused.reason}\n"
            )
    return 0


def _temperature_limits(args: argparse.Namespace) -> TemperatureLimits:
    limits = TemperatureLimits(max_c=args.max_temperature_c, start_below_c=args.start_below_temperature_c)
    for complaint in limits.complaints():
        raise PowerlabError(complaint)
    return limits


def _metrics_shown(args: argparse.Namespace, daemon: Daemon, spool: Path) -> AbstractContextManager[object]:
    """Show metrics meanwhile, if asked to; only then is loaded what that takes."""
    if args.metrics_port is None:
        return nullcontext()
    from powerlab_agent.metrics import AgentCollector, served

    collector = AgentCollector(
        status=daemon.status, contact=daemon.client.contact, spool=SpoolSize(spool), host=daemon.host
    )
    return served(collector, args.metrics_host, args.metrics_port)


def _check(args: argparse.Namespace) -> int:
    state = _own_state(args)
    identity = load_identity(state)
    with _own_host(args, identity) as host:
        client = Client(identity.server, identity.token)
        found = tuple(check_self(Checked(state=state, limits=Limits(), client=client, host=host)))
    if args.json:
        sys.stdout.write(encode(found).decode() + "\n")
    else:
        for one in found:
            sys.stdout.write(f"{'ok' if one.passed else 'NOT OK':7} {one.name:11} {one.detail}\n")
    return next((CHECKS[one.name][0] for one in found if not one.passed), 0)


def _own_host(args: argparse.Namespace, identity: Identity) -> AbstractContextManager[Host]:
    """Return the device the agent was enrolled for, or the one that the command line names instead."""
    if args.board or args.sysroot:
        return opened_host(args.board, args.sysroot or Path("/"), name=identity.device_name)
    return opened_host(identity.board, Path(identity.sysroot or "/"), name=identity.device_name)


def heed_signals(request_stop: Callable[[], None]) -> None:
    """Stop in order when the service manager, a terminal or the end of a session asks for it."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: request_stop())


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``powerlab-agent``."""
    parser = Parser(prog="powerlab-agent")
    add_arguments(parser)
    try:
        return run(parser.parse_args(argv))
    except KeyboardInterrupt:
        return 130
    except PowerlabError as error:
        sys.stderr.write(f"powerlab-agent: {error}\n")
        return 2
