"""The command line.

A command is a module or package of :mod:`powerlab.cli.commands` with ``DESCRIPTION``, ``EPILOG``,
``add_arguments(parser)`` and ``run(args)``, and a line in :data:`COMMANDS`. Only the command that is called
is imported. Options that several commands share are in :mod:`powerlab.cli.arguments`, printing is in
:mod:`powerlab.cli.output`, and reading and writing of stored sweeps in :mod:`powerlab.cli.stored`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Collection, Sequence
from types import ModuleType

from powerlab import __version__
from powerlab.command_line import Parser
from powerlab.domain.errors import PowerlabError

COMMANDS = {
    "demo": "measure ResNet-50 on this machine with a server and an agent, in about two minutes",
    "profile": "sweep models over threads, batch sizes and power modes",
    "layers": "measure time and energy of every layer of a model",
    "doctor": "show what this machine can measure and set",
    "boards": "list known boards, simulate one",
    "modes": "list power modes, set one, restore the previous one",
    "calibrate": "measure sensor lag with a step load",
    "engine": "run, inspect, plan or tune a model on the built-in engine",
    "serve": "run the server: REST API and dashboards",
    "tokens": "create, list and revoke access tokens",
    "database": "remove old data from a server's database",
    "agent": "enrol and run the agent on this device",
    "devices": "list, label, group and book the devices of a server",
    "sweep": "create, follow, pause and cancel sweeps on a server",
    "models": "upload, list and download ONNX files on a server",
    "runs": "list and show stored runs",
    "audit": "recompute a stored run from its raw record, and check it against MLPerf Power's rules",
    "compare": "show which differences between points are significant",
    "study": "repeat a published experiment and show both results",
    "export": "export runs or traces as CSV, NDJSON or Parquet",
    "traces": "move traces into files, compact trace files",
    "tegrastats": "summarise a tegrastats log: power and energy of each rail",
}
"""Every command with its line in ``powerlab --help``, in that order."""

EXIT_OK = 0
EXIT_INCOMPLETE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_CLOSED = 141

_DESCRIPTION = """\
Measure latency, throughput, watts and images per joule of neural networks over threads, batch sizes and power modes.
"""

_EPILOG = """\
exit status:
  0    success
  1    completed, but some runs failed or are void
  2    invalid request; a message on standard error says why and what to do
  130  interrupted; finished runs are saved and the previous power mode is restored
  141  the reader of the output closed the pipe

examples:
  powerlab doctor                                   show what this machine can measure and set
  powerlab profile resnet50 --threads 1,2           sweep this machine
  powerlab profile resnet50 --board jetson-agx-xavier --modes MAXN,MODE_15W
                                                    sweep a simulated board
  powerlab serve                                    start the server and its dashboards
"""


def parser(commands: Collection[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Return the parser; only ``commands`` are imported and get their options, the others are listed by name only."""
    top = Parser(prog="powerlab", description=_DESCRIPTION, epilog=_EPILOG)
    top.add_argument("--version", action="version", version=f"powerlab {__version__}")
    subparsers = top.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for name, help_line in COMMANDS.items():
        command = subparsers.add_parser(name, help=help_line)
        if name in commands:
            module = _module(name)
            command.description, command.epilog = module.DESCRIPTION, module.EPILOG
            module.add_arguments(command)
    return top


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"powerlab.cli.commands.{name}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    try:
        words = sys.argv[1:] if argv is None else argv
        args = parser([word for word in words if word in COMMANDS][:1]).parse_args(argv)
        status: int = _module(args.command).run(args)
        sys.stdout.flush()
    except PowerlabError as error:
        print(f"powerlab: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        print("powerlab: interrupted; finished runs are saved.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe, as head(1) does; discard what is still to be flushed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_CLOSED
    return status
