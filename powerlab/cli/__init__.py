"""The command line.

A command is a module or package of :mod:`powerlab.cli.commands` with ``DESCRIPTION``, ``EPILOG``,
``add_arguments(parser)`` and ``run(args)``, and a line in :data:`GROUPS`. Only the command that is called
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
from powerlab.command_line import Parser, grouped
from powerlab.domain.errors import PowerlabError

GROUPS = {
    "Measure": {
        "demo": "measure ResNet-50 on this machine with a server and an agent, in about two minutes",
        "profile": "sweep models over threads, batch sizes and power modes",
        "repeat": "add repeats to a sweep",
        "layers": "measure time and energy of every layer of a model",
        "study": "repeat a published experiment and show both results",
        "engine": "run, inspect, plan or tune a model on the built-in engine",
    },
    "Answer": {
        "compare": "show which differences between points are significant",
        "report": "write a report of a sweep, or of sets compared: HTML, Markdown, LaTeX, PDF",
        "best": "find the operating point for a goal under bounds",
        "apply": "set the power mode of the best operating point on this device",
        "trends": "show a model's figures over time, and where they changed",
        "baseline": "name the sweeps that later ones are judged against",
        "gate": "judge a change against a baseline, for continuous integration",
        "learn": "find the energy of training to a stated accuracy, from a stored run",
        "scaling": "simulate training on many nodes, from the recorded steps of a stored run",
        "audit": "recompute a stored run from its raw record, and check it against MLPerf Power's rules",
    },
    "Device": {
        "doctor": "show what this machine can measure and set",
        "top": "watch power, clocks, temperatures and load on one screen",
        "boards": "list known boards, simulate one",
        "modes": "list power modes, set one, restore the previous one",
        "calibrate": "measure sensor lag with a step load",
        "tegrastats": "summarise a tegrastats log: power and energy of each rail",
    },
    "Fleet": {
        "serve": "run the server: REST API and dashboards",
        "agent": "enrol and run the agent on this device",
        "devices": "list, label, group and book the devices of a server",
        "sweep": "create, follow, pause and cancel sweeps on a server",
        "models": "upload, list and download ONNX files on a server",
        "tokens": "create, list and revoke access tokens",
    },
    "Data": {
        "runs": "list and show stored runs",
        "export": "export runs or traces as CSV, NDJSON or Parquet",
        "bundle": "pack a sweep with its raw records; verify or repeat one elsewhere",
        "traces": "move traces into files, compact trace files",
        "database": "remove old data from a server's database",
        "completion": "print a script that lets a shell complete commands and identifiers",
    },
}
"""Every command by its purpose, with its line in ``powerlab --help``, in that order."""

COMMANDS = {name: line for group in GROUPS.values() for name, line in group.items()}
"""Every command with its line."""

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
    top = Parser(prog="powerlab", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=grouped(GROUPS))
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
    """Run the command line and return its exit status; without any word, show the help."""
    try:
        words = (sys.argv[1:] if argv is None else argv) or ["--help"]
        args = parser([word for word in words if word in COMMANDS][:1]).parse_args(words)
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
