"""Carries out ``powerlab demo``."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from powerlab.cli import EXIT_INCOMPLETE, EXIT_OK
from powerlab.cli.arguments.server import connect
from powerlab.cli.commands.demo.plan import demo_plan
from powerlab.cli.commands.serve import DEFAULT_PORT
from powerlab.cli.commands.sweep.requests import find_device, follow, print_sweep
from powerlab.cli.output.console import OutputConsole
from powerlab.cli.output.sweep_report import answer, notes
from powerlab.cli.process.children import check_alive, child, powerlab_command
from powerlab.client import Client
from powerlab.domain.errors import PowerlabError
from powerlab.protocol.messages import EnrolmentCodeRequest, SweepRequest
from powerlab.protocol.records import SweepState

_PROGRAM = os.path.relpath(sys.argv[0]) if Path(sys.argv[0]).name == "powerlab" else "powerlab"
"""The program as it was called, so that the commands that the demo prints can be pasted."""


@dataclass(slots=True)
class _Phases:
    """How long each part took."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - start

    def __str__(self) -> str:
        return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in self.seconds.items())


def demonstrate(args: argparse.Namespace) -> int:
    """Run the demo and return the exit status."""
    signal.signal(signal.SIGTERM, _interrupt)
    console = OutputConsole()
    state = _make(args.state)
    database = args.database or str(state / "powerlab.db")
    phases = _Phases()
    with ExitStack() as stack:
        with phases.phase("server"):
            server_log = state / "server.log"
            words = powerlab_command(
                "serve", "--host", "127.0.0.1", "--port", str(_port(args.port)), "--database", database
            )
            server = stack.enter_context(child(words, server_log))
            api = connect(_address(server, server_log), os.environ.get("POWERLAB_OPERATOR_TOKEN"))
        with phases.phase("enrolment"):
            name = _enrol(api, state, args.board)
            agent_log = state / "agent.log"
            command = powerlab_command("agent", "run", "--state", str(state / "agent"))
            agent = stack.enter_context(child(command, agent_log))
            device = find_device(api, name)
        with phases.phase("sweep"):
            check_alive(agent, "agent", agent_log)
            plan = demo_plan(device, args.model, args.seconds)
            record = api.submit(SweepRequest(device_id=device.id, plan=plan))
            console.print(f"{record.planned_run_count} runs on {name}", highlight=False)
            record = follow(api, record.id, lambda: check_alive(agent, "agent", agent_log))
        with phases.phase("table"):
            print_sweep(record, api.summaries(record.id), as_json=False)
            runs = list(api.runs(sweep_id=record.id))
            options = f" --database {database}" + (f" --board {args.board}" if args.board else "")
            for line in (*answer(runs, options), *notes(runs, device.capabilities.total, plan)):
                console.print(line, highlight=False, soft_wrap=True)
        console.print(f"\nphases: {phases}", highlight=False)
        for line in _next_steps(record.id, runs[0].id if runs else None, database):
            console.print(line, highlight=False, soft_wrap=True)
        serves = console.is_terminal and not args.no_serve
        page = f"dashboard: {api.server}/sweeps/{record.id}"
        hint = "(Ctrl-C ends)" if serves else f"after `{_PROGRAM} serve --database {database}`"
        console.print(f"{page} {hint}", highlight=False, soft_wrap=True)
        if serves:
            _wait(server, server_log)
    return EXIT_OK if record.state is SweepState.DONE else EXIT_INCOMPLETE


def _next_steps(sweep_id: str, run_id: str | None, database: str) -> Iterator[str]:
    """Yield commands that work as printed, from the folder in which the demo was started."""
    yield "next:"
    yield f"  {_PROGRAM} compare {sweep_id} --from {database}"
    if run_id is not None:
        yield f"  {_PROGRAM} runs show {run_id} --from {database}"
        yield f"  {_PROGRAM} audit {run_id} --from {database}"


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _make(directory: Path) -> Path:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PowerlabError(f"--state {directory} cannot be made ({error.strerror}); choose another folder.") from error
    if not os.access(directory, os.W_OK):
        raise PowerlabError(f"--state {directory} cannot be written; choose another folder.")
    return directory


def _port(wanted: int | None) -> int:
    """Return the port that was asked for, the usual one where it is free, or 0 for any."""
    if wanted is not None:
        return wanted
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", DEFAULT_PORT))
        except OSError:
            return 0
    return DEFAULT_PORT


def _address(server: subprocess.Popen[str], log: Path) -> str:
    """Return the address that the server prints when it listens."""
    line = server.stdout.readline() if server.stdout else ""
    if " at http://" not in line:
        server.wait()
        check_alive(server, "server", log)
    return line.split()[-1]


def _enrol(api: Client, state: Path, board: str | None) -> str:
    """Enrol the agent, again where the database knows the device, and return the device's name."""
    name = f"simulated-{board}" if board else socket.gethostname()
    known = [device.id for device in api.devices(name=name) if device.device.name == name]
    request = EnrolmentCodeRequest(device_id=known[0] if known else None)
    code = api.enrolment_code(request).code
    words = ["agent", "enrol", "--server", api.server, "--code", code, "--state", str(state / "agent"), "--name", name]
    if board:
        words += ["--board", board]
    done = subprocess.run(powerlab_command(*words), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PowerlabError(done.stderr.strip().rpartition("\n")[2].removeprefix("powerlab: "))
    return name


def _wait(server: subprocess.Popen[str], log: Path) -> None:
    try:
        server.wait()
    except KeyboardInterrupt:
        return
    check_alive(server, "server", log)
