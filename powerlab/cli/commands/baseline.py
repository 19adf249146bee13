"""``powerlab baseline``: name the sweeps that later ones are judged against."""

from __future__ import annotations

import argparse

from powerlab.analysis.wording import counted
from powerlab.cli import EXIT_OK
from powerlab.cli.arguments.stored_runs import add_source_arguments
from powerlab.cli.output.console import identified, plain_table, print_neatly, table_console
from powerlab.cli.stored.baselines import BaselineStore, open_baselines
from powerlab.cli.stored.open_source import open_source
from powerlab.cli.stored.said import say
from powerlab.domain.errors import PowerlabError
from powerlab.domain.model_name import short
from powerlab.protocol.baselines import Baseline, BaselineRequest
from powerlab.protocol.wire import encode
from powerlab.sources.identifiers import sweep_ids

DESCRIPTION = """\
Name sweeps a baseline, which `powerlab gate` judges others against. A baseline holds sweeps of any number of devices
and models; several sweeps of each show how much they differ from day to day.
"""

EPILOG = """\
exit status: 0 success; 2 invalid request, a message says why

examples:
  powerlab baseline set main SWEEP SWEEP SWEEP     in place of those of the same devices and models
  powerlab baseline add main SWEEP                 beside those that are there
  powerlab baseline list
  powerlab baseline remove main
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    made = [
        actions.add_parser(
            "set",
            help="name sweeps a baseline",
            description="Name sweeps a baseline, in place of its sweeps of the same devices and models.",
        ),
        actions.add_parser(
            "add",
            help="add sweeps to a baseline",
            description="Add sweeps to a baseline, which is made where it is missing.",
        ),
    ]
    listed = actions.add_parser("list", help="list baselines", description="List baselines with their sweeps.")
    removed = actions.add_parser(
        "remove", help="remove a baseline", description="Remove a baseline; its sweeps stay as they are."
    )
    for action in (*made, removed):
        action.add_argument("name", metavar="NAME", help="name of the baseline, such as main")
    for action in made:
        action.add_argument("sweeps", nargs="+", metavar="SWEEP", help="sweep or campaign; first digits suffice")
    for action in (*made, listed, removed):
        add_source_arguments(action)
        action.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    with open_baselines(args) as store:
        if store is None:
            raise PowerlabError(
                "named baselines are kept in a database or on a server, and there is none; name one with --from, or "
                "give `powerlab gate --baseline` the results files themselves."
            )
        if args.action == "remove":
            store.remove(args.name)
            found = []
        elif args.action == "list":
            found = list(store.baselines())
        else:
            found = [_put(args, store)]
    if args.json:
        print(encode(found).decode())
    elif args.action == "remove":
        print(f"removed the baseline {args.name}; its sweeps stay.")
    else:
        show(found)
    return EXIT_OK


def _put(args: argparse.Namespace, store: BaselineStore) -> Baseline:
    with open_source(args) as source:
        found = dict.fromkeys(sweep_id for word in args.sweeps for sweep_id in sweep_ids(source, word))
        say(source, f"{counted(len(found), 'sweep')} for the baseline {args.name}")
    return store.put(args.name, BaselineRequest(sweep_ids=tuple(found), keep=args.action == "add"))


def show(baselines: list[Baseline]) -> None:
    """Print a row for each sweep of each baseline."""
    if not baselines:
        print("there is no baseline; `powerlab baseline set main SWEEP` makes one.")
        return
    table = plain_table("baseline", "sweep", "device", "set", "by")
    for one in baselines:
        for sweep in one.sweeps:
            name = identified(sweep.sweep_id, ", ".join(map(short, sweep.models)))
            table.add_row(one.name, name, sweep.device_name, f"{sweep.set_at:%Y-%m-%d %H:%M} UTC", sweep.set_by)
    print_neatly(table_console(), table)
