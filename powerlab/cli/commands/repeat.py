"""``powerlab repeat``: more repeats of a sweep that has too few for a decision."""

from __future__ import annotations

import argparse
import os
import sys

from powerlab.analysis.summary import MIN_VALID
from powerlab.cli.arguments.host import add_host_arguments
from powerlab.domain.errors import PowerlabError

DESCRIPTION = f"""\
Add repeats to a sweep that is over: every point is measured again, in shuffled blocks as before. The runs join the same
sweep, and its answer is computed again from all of them. A claim takes {MIN_VALID} valid runs of each point. Runs that
are missing because the sweep was interrupted are made too.
"""

EPILOG = """\
exit status: 0 every run is usable, or the repeats are queued; 1 some runs failed or are void; 2 invalid request;
130 interrupted (finished runs are saved)

A sweep that this machine has measured is measured here; name the simulated board that it used, if it did. With a
server, the repeats are queued for the sweep's device.

examples:
  powerlab repeat SWEEP
  powerlab repeat SWEEP --add 5 --board jetson-agx-xavier
  powerlab repeat SWEEP --server https://lab.example
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("sweep", metavar="SWEEP", help="sweep id, or its first digits")
    parser.add_argument("--add", type=int, default=MIN_VALID, metavar="N", help=f"repeats (default: {MIN_VALID})")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--database", metavar="PATH_OR_URL", help="database that has the sweep, or none (default: the local one)"
    )
    where.add_argument("--server", metavar="URL", help="server that has it (default: POWERLAB_SERVER, if set)")
    add_host_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.database is None and (args.server or os.environ.get("POWERLAB_SERVER")):
        return _queue(args)
    return _measure(args)


def _queue(args: argparse.Namespace) -> int:
    from powerlab.cli.arguments.server import connect
    from powerlab.cli.commands.sweep.changes import say
    from powerlab.cli.commands.sweep.requests import find_sweep

    api = connect(args.server)
    return say(args, api.repeat(find_sweep(api, args.sweep).id, args.add))


def _measure(args: argparse.Namespace) -> int:
    from powerlab.backends.registry import BACKENDS
    from powerlab.cli.arguments.host import open_host
    from powerlab.cli.commands.profile.measure import measure_into, show
    from powerlab.cli.process.interrupts import orderly_ends
    from powerlab.cli.stored.local_database import NO_STORE, go_on, open_local
    from powerlab.cli.stored.sweeps import find_sweep
    from powerlab.domain.preflight import check_plan

    none = args.database == NO_STORE
    known = find_sweep(args.sweep, argparse.Namespace(read_from=None if none else args.database))
    made = 1 + max((run.repeat for run in known.runs), default=-1)
    plan = known.plan.with_more_repeats(made, args.add)
    with orderly_ends(), open_host(args) as host:
        device, capabilities = host.device(), host.capabilities(plan.modes)
        if (device.name, device.simulated) != (known.device, known.simulated):
            raise PowerlabError(_elsewhere(known.id, known.device, device.name, simulated=known.simulated))
        check_plan(plan, device, capabilities, tuple(BACKENDS))
        store = open_local(args.database)
        stored = None if store is None else go_on(store, known.id, device, capabilities, args.add)
        if store is not None and stored is None:
            store.close()
        done = measure_into(plan, host, device, known.id, stored, earlier=known.runs)
        show(done, device, capabilities, plan, args)
    print(f"powerlab: {done.words}", file=sys.stderr)
    return done.exit_status


def _elsewhere(sweep_id: str, wanted: str, here: str, *, simulated: bool) -> str:
    how = "give its board with --board" if simulated else "repeat it there, or profile this device"
    return f"the sweep {sweep_id} was measured on {wanted}, and this is {here}; {how}."
