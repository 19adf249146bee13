"""Carries out ``powerlab sweep``."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from powerlab.analysis.searched import runs_in_contest, search_notes
from powerlab.analysis.summary import PointSummary
from powerlab.analysis.wording import counted
from powerlab.cli import EXIT_INCOMPLETE, EXIT_OK
from powerlab.cli.arguments.devices import found_devices, in_common, several_from
from powerlab.cli.arguments.plan import plan_from
from powerlab.cli.arguments.server import connect
from powerlab.cli.output.console import identified, plain_table, print_neatly, table_console
from powerlab.cli.output.sweep_report import answer
from powerlab.cli.output.sweep_table import sweep_table
from powerlab.cli.stored.open_source import open_source
from powerlab.cli.stored.said import say
from powerlab.client import Client
from powerlab.client.labs import Labs
from powerlab.client.models import full_names
from powerlab.domain.errors import PowerlabError
from powerlab.domain.model_name import short
from powerlab.domain.run import Run
from powerlab.protocol.labs import CampaignRecord, CampaignRequest, Each
from powerlab.protocol.messages import SweepRequest
from powerlab.protocol.records import OVER, DeviceRecord, SweepRecord, SweepState
from powerlab.protocol.wire import encode
from powerlab.sources.identifiers import campaign_id, device_id, sweep_id, sweep_ids
from powerlab.sources.server import ServerSource
from powerlab.sources.source import RunChoice, SweepChoice

_POLL_S = 1.0


def create(args: argparse.Namespace) -> int:
    """Queue a sweep."""
    api = connect(args.server)
    request = request_from(args, api)
    if isinstance(request, CampaignRequest):
        return _say_campaign(args, Labs(api.transport).submit_campaign(request))
    record = api.submit(request)
    if args.json:
        print(encode(record).decode())
    else:
        print(_queued(record))
    return EXIT_OK


def _say_campaign(args: argparse.Namespace, campaign: CampaignRecord) -> int:
    if args.json:
        print(encode(campaign).decode())
        return EXIT_OK
    print(f"campaign {campaign.id}:")
    for record in campaign.sweeps:
        print(f"  {_queued(record)}")
    return EXIT_OK


def _queued(record: SweepRecord) -> str:
    most = "at most " if record.plan.search_percent else ""
    return f"{record.id}: {most}{record.planned_run_count} runs queued for {record.place}"


def request_from(args: argparse.Namespace, api: Client) -> SweepRequest | CampaignRequest:
    """Return what the words of the command line ask for."""
    selector = several_from(args)
    devices = _named(args, api) if selector is None else found_devices(api, selector)
    args.models = full_names(api.transport, tuple(args.models))
    plan, priority = plan_from(args, *in_common(devices)), args.priority or 0
    if selector is None:
        others = tuple(one.id for one in devices[1:])
        return SweepRequest(device_id=devices[0].id, plan=plan, priority=priority, with_ids=others)
    if args.each is None:
        return SweepRequest(any_of=selector, plan=plan, priority=priority)
    return CampaignRequest(each=Each(args.each), of=selector, plan=plan, priority=priority)


def _named(args: argparse.Namespace, api: Client) -> list[DeviceRecord]:
    """Return the device that is named, or those that train together."""
    if args.devices is None:
        return [find_device(api, args.device)]
    if args.device is not None:
        raise PowerlabError("--device names one device, --devices several that train together; give only one of them.")
    names = [name.strip() for name in args.devices.split(",")]
    if len(names) < 2 or not all(names):
        raise PowerlabError(f"--devices got {args.devices!r}; name two devices or more, such as nano-1,nano-2.")
    return [find_device(api, name) for name in names]


def list_all(args: argparse.Namespace) -> int:
    """List sweeps."""
    with open_source(args) as source:
        choice = SweepChoice(
            device_id=None if args.device is None else device_id(source, args.device),
            state=next((one for one in SweepState if one.label == args.state), None),
            model=args.model,
            campaign_id=None if args.campaign is None else campaign_id(source, args.campaign),
        )
        found = list(source.sweeps(choice))
        say(source, counted(len(found), "sweep"))
    if args.json:
        print(encode(found).decode())
        return EXIT_OK
    table = plain_table("sweep", "device", "state", "runs", "created")
    for one in found:
        runs = f"{one.stored_run_count}/{one.planned_run_count}"
        created = f"{one.created_at:%Y-%m-%d %H:%M} UTC"
        name = identified(one.id, ", ".join(map(short, one.plan.models)))
        table.add_row(name, Text(one.place), one.state.label, runs, created)
    print_neatly(table_console(), table)
    return EXIT_OK


def show(args: argparse.Namespace) -> int:
    """Show a sweep's state and table; of a campaign those of all its sweeps."""
    with open_source(args) as source:
        records = [source.sweep(one) for one in sweep_ids(source, args.sweep)]
        say(source, ", ".join(f"sweep {record.id}" for record in records))
        for record in records:
            print_sweep(record, source.summaries(record.id), as_json=args.json)
            if record.plan.search_percent and record.stored_run_count and not args.json:
                _print_search(record, list(source.runs(RunChoice(sweep_id=record.id))))
    return EXIT_OK


def _print_search(record: SweepRecord, runs: Sequence[Run]) -> None:
    """Print what a search has found, and what it has measured for that."""
    found = answer(runs_in_contest(runs, record.plan))
    print_neatly(table_console(), *search_notes(runs, record.plan, interrupted=record.interrupted), *found)


def watch(args: argparse.Namespace) -> int:
    """Follow a sweep until it is over."""
    api = connect(args.server)
    record = follow(api, find_sweep(api, args.sweep).id)
    print_sweep(record, api.summaries(record.id), as_json=args.json)
    if record.plan.search_percent and record.stored_run_count and not args.json:
        _print_search(record, list(api.runs(sweep_id=record.id)))
    return EXIT_OK if record.state is SweepState.DONE else EXIT_INCOMPLETE


def find_device(api: Client, wanted: str | None) -> DeviceRecord:
    """Return the device of that name, or the only one whose id begins so; without a word, the only device there is."""
    if wanted is not None:
        return api.device(device_id(ServerSource(api), wanted))
    devices = list(api.devices())
    if not devices:
        raise PowerlabError("the server knows no device; enrol one with `powerlab agent enrol`.")
    if len(devices) > 1:
        names = ", ".join(device.device.name for device in devices)
        raise PowerlabError(f"the server knows several devices ({names}); choose one with --device.")
    return devices[0]


def find_sweep(api: Client, wanted: str) -> SweepRecord:
    """Return the sweep with this id, or the only one whose id begins so."""
    return api.sweep(sweep_id(ServerSource(api), wanted))


def follow(api: Client, sweep_id: str, still_going: Callable[[], None] = lambda: None) -> SweepRecord:
    """Show a progress bar on standard error until a sweep is over, and return it; ``still_going`` may object."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        record = api.sweep(sweep_id)
        task = progress.add_task(record.state.label, total=record.planned_run_count)
        while True:
            doing = record.detail if record.state is SweepState.RUNNING and record.detail else record.state.label
            progress.update(task, completed=record.stored_run_count, description=f"{record.place}: {doing}")
            if record.state in OVER:
                return record
            still_going()
            time.sleep(_POLL_S)
            record = api.sweep(sweep_id)


def print_sweep(record: SweepRecord, summaries: Sequence[PointSummary], *, as_json: bool) -> None:
    """Print a sweep's state and the table of its points."""
    if as_json:
        print(encode({"sweep": record, "summaries": summaries}).decode())
        return
    state = f"{record.state.label}: {record.detail}" if record.detail else record.state.label
    print(f"{record.id} on {record.place}, {state}, {record.stored_run_count}/{record.planned_run_count} runs")
    if summaries:
        console = table_console()
        print_neatly(console, sweep_table(summaries, console.width))
