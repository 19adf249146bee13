"""The command line. One command a file; each file has ``add_parser`` and ``run``, and one line in :data:`COMMANDS`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from powerlab import __version__
from powerlab.command_line import Parser
from powerlab.domain.errors import PowerlabError

COMMANDS = (
    "demo",
    "profile",
    "layers",
    "doctor",
    "boards",
    "modes",
    "calibrate",
    "engine",
    "serve",
    "tokens",
    "database",
    "agent",
    "devices",
    "sweep",
    "models",
    "runs",
    "audit",
    "compare",
    "study",
    "export",
    "traces",
    "tegrastats",
)
"""Names of the modules in this package, in the order ``--help`` shows them."""

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
  0    everything asked for was done
  1    done, but some runs failed or are void
  2    the request cannot be carried out; one sentence on standard error says why and how to mend it
  130  interrupted; what was measured is kept and the device's power mode is restored
  141  whatever reads the output has stopped reading

examples:
  powerlab doctor                                   what this machine can measure and set
  powerlab profile resnet50 --threads 1,2           sweep this machine
  powerlab profile resnet50 --board jetson-agx-xavier --modes MAXN,MODE_15W
                                                    the same on a simulated board
  powerlab serve                                    the server with its dashboards
"""


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="powerlab", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--version", action="version", version=f"powerlab {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for name in COMMANDS:
        importlib.import_module(f"powerlab.cli.{name}").add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    try:
        args = _parser().parse_args(argv)
        command = importlib.import_module(f"powerlab.cli.{args.command}")
        status: int = command.run(args)
        sys.stdout.flush()
    except PowerlabError as error:
        print(f"powerlab: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        print("powerlab: interrupted; what was measured is kept.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Who read the output has read enough, as "head" does; what is still to be flushed goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_CLOSED
    return status
