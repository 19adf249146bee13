"""Command-line arguments of the agent, kept apart so that --help imports neither engine nor network."""

from __future__ import annotations

import argparse
from pathlib import Path

from powerlab.command_line import integer_in

_EPILOG = """\
exit status: 0 success; 2 invalid request; a message on standard error says why and what to do

`check` prints one line per check and exits with 0, or with the number of the first failed check: 10 the state
directory cannot be written, 11 the disk is nearly full, 12 the server does not answer, 13 it rejects the token, 14
the clocks differ by more than a second, 15 no power sensor can be read, 16 a power mode was not restored, 17 no
privileged helper is running and this user is not root, 18 there is no sensor for a temperature limit. `run` makes the
same checks and reports them to the server.

Results are kept in --state until the server has stored them. After SIGTERM, SIGHUP or Ctrl-C the agent finishes and
uploads the current run and returns the job. A killed agent continues where it was when it is started again.

environment:
  POWERLAB_STATE_DIR   state directory (default: $XDG_STATE_HOME/powerlab)

examples:
  powerlab agent enrol --server http://server:8765 --code CODE
  powerlab agent run
  powerlab agent enrol --server http://server:8765 --code CODE --state ./xavier \\
                       --board jetson-agx-xavier
  powerlab agent run --once --state ./xavier
  powerlab agent run --metrics-port 8766
  powerlab agent check --state ./xavier
"""
_MOST_MB = 4_194_304
"""4 TiB: a spool cannot be larger, for SQLite's file ends there with pages of 4 KiB; nor is a device's disk."""
_MOST_PORT = 65_535


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the agent's own commands to a parser."""
    parser.description = "Run this device's sweeps for a server, and upload the results."
    parser.epilog = _EPILOG
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    enrol = actions.add_parser(
        "enrol",
        help="enrol this device with a server",
        description="Enrol this device with a server, using a one-time code, and store the token it returns.",
    )
    enrol.add_argument("--server", required=True, metavar="URL", help="for example http://server:8765")
    enrol.add_argument("--code", required=True, help="one-time code from the server")
    enrol.add_argument("--name", help="name of the device (default: the host name)")
    _add_where(enrol, "use a simulated board instead of this machine")
    run = actions.add_parser(
        "run",
        help="run sweeps until stopped",
        description="Take sweeps from the server, run them and upload the results, until SIGTERM or Ctrl-C.",
    )
    run.add_argument("--once", action="store_true", help="exit when the server has no more jobs")
    run.add_argument(
        "--spool-size",
        type=integer_in(1, _MOST_MB),
        default=2048,
        metavar="MIB",
        help=(
            "disk space for results that wait for upload; above it, traces of the oldest runs are dropped, but never "
            "runs (default: 2048)"
        ),
    )
    run.add_argument(
        "--allow-reboot",
        action="store_true",
        help="reboot this device for power modes that need it, and back at the end of the sweep (default: never)",
    )
    run.add_argument(
        "--max-temperature-c",
        type=float,
        metavar="C",
        help="abort every run above this temperature, whatever the sweep allows (default: no limit)",
    )
    run.add_argument(
        "--start-below-temperature-c",
        type=float,
        metavar="C",
        help="wait until the device is cooler before each run (default: 10 °C below the limit, if there is one)",
    )
    run.add_argument(
        "--models-mb",
        type=integer_in(1, _MOST_MB),
        default=8000,
        metavar="MB",
        help="disk space for downloaded models (default: 8000)",
    )
    run.add_argument(
        "--metrics-port",
        type=integer_in(1, _MOST_PORT),
        metavar="PORT",
        help="serve Prometheus metrics at http://127.0.0.1:PORT/metrics (default: off)",
    )
    run.add_argument(
        "--metrics-host", default="127.0.0.1", metavar="ADDRESS", help="address for that (default: 127.0.0.1)"
    )
    check = actions.add_parser(
        "check",
        help="check what this agent needs",
        description=(
            "Check the state directory, its disk, the server, the token, the clock, the sensors and the power modes."
        ),
    )
    check.add_argument("--json", action="store_true", help="for programs")
    for action in (run, check):
        _add_where(action, "a simulated board (default: as enrolled)")
    for action in (enrol, run, check):
        action.add_argument(
            "--state",
            type=Path,
            metavar="DIR",
            help="directory of the agent's token and spool (default: agent/ in the state directory)",
        )


def _add_where(action: argparse.ArgumentParser, board: str) -> None:
    which = action.add_mutually_exclusive_group()
    which.add_argument("--board", metavar="NAME", help=board)
    which.add_argument(
        "--sysroot", metavar="DIR", type=Path, help="use DIR instead of / as the root of sensors and power modes"
    )
