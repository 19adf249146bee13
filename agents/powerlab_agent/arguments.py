"""Command-line arguments of the agent, kept apart so that --help imports neither engine nor network."""

from __future__ import annotations

import argparse
from pathlib import Path

from powerlab.command_line import integer_in

_EPILOG = """\
exit status: 0 stopped as asked; 2 the request cannot be carried out, one sentence on standard error says why

`check` says a sentence for each thing it looks at, and ends with 0 where all is well, else with the number of the first
that is not: 10 the state directory cannot be written, 11 little room on its disk, 12 the server does not answer, 13 it
does not take the token, 14 the clocks differ by more than a second, 15 no power sensor can be read, 16 a power mode was
not put back, 17 no privileged helper listens and this user is not root, 18 a limit of temperatures that nobody can
watch. `run` checks the same and tells the server.

What was measured lies below --state until the server has stored it. SIGTERM, SIGHUP and Ctrl-C let the run in progress
end, upload it and give the job back; a killed agent goes on where it was when it is started again.

environment:
  POWERLAB_STATE_DIR   the state directory (default: the user's, $XDG_STATE_HOME/powerlab)

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
    parser.description = "Measure this device for a server: take its sweeps, run them, upload the runs."
    parser.epilog = _EPILOG
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    enrol = actions.add_parser(
        "enrol",
        help="make this device known to a server, once",
        description="Make this device known to a server with a one-time code, and keep the token it answers with.",
    )
    enrol.add_argument("--server", required=True, metavar="URL", help="for example http://server:8765")
    enrol.add_argument("--code", required=True, help="the one-time code the server gave")
    enrol.add_argument("--name", help="what people call the device (default: the host name)")
    _add_where(enrol, "a simulated board instead of this machine")
    run = actions.add_parser(
        "run",
        help="take and run sweeps until stopped",
        description="Take sweeps from the server, run them and upload the runs, until SIGTERM or Ctrl-C.",
    )
    run.add_argument("--once", action="store_true", help="end when the server has nothing more to do")
    run.add_argument(
        "--spool-size",
        type=integer_in(1, _MOST_MB),
        default=2048,
        metavar="MIB",
        help="what is measured may take so much disk until the server has it; above that, traces of the oldest runs are"
        " thrown away, and runs never (default: 2048)",
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
        help="end every run in which this device gets hotter, whatever a sweep allows (default: no limit)",
    )
    run.add_argument(
        "--start-below-temperature-c",
        type=float,
        metavar="C",
        help="begin a run when the device is cooler (default: 10 °C below the limit, where there is one)",
    )
    run.add_argument(
        "--models-mb",
        type=integer_in(1, _MOST_MB),
        default=8000,
        metavar="MB",
        help="most that fetched models may take (default: 8000)",
    )
    run.add_argument(
        "--metrics-port",
        type=integer_in(1, _MOST_PORT),
        metavar="PORT",
        help="show metrics for Prometheus at http://127.0.0.1:PORT/metrics (default: nowhere)",
    )
    run.add_argument(
        "--metrics-host", default="127.0.0.1", metavar="ADDRESS", help="show them at this address (default: 127.0.0.1)"
    )
    check = actions.add_parser(
        "check",
        help="say whether this agent has what it needs",
        description="Look at the state directory, its disk, the server, the token, the clock, the sensors, the modes.",
    )
    check.add_argument("--json", action="store_true", help="for programs")
    for action in (run, check):
        _add_where(action, "a simulated board (default: as enrolled)")
    for action in (enrol, run, check):
        action.add_argument(
            "--state",
            type=Path,
            metavar="DIR",
            help="where the agent keeps its token and what it measured (default: agent/ in the state directory)",
        )


def _add_where(action: argparse.ArgumentParser, board: str) -> None:
    which = action.add_mutually_exclusive_group()
    which.add_argument("--board", metavar="NAME", help=board)
    which.add_argument("--sysroot", metavar="DIR", type=Path, help="read sensors and set modes below DIR instead of /")
