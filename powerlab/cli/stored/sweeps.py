"""A stored sweep with all its runs: from a database, a server, or a file that ``powerlab profile`` wrote."""

from __future__ import annotations

import argparse
import importlib.util
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec

from powerlab.cli.arguments.server import connect
from powerlab.cli.commands.sweep import requests
from powerlab.cli.output.sweep_report import in_plan_order
from powerlab.cli.stored.local_database import default_store
from powerlab.cli.stored.runs import open_existing, stored_runs
from powerlab.domain.device import Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.records import SweepRecord
from powerlab.state_dir import state_dir


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRuns:
    """A sweep and what is known of it.

    Attributes:
        id: its identifier.
        device: the device's name.
        simulated: whether that is a simulated board.
        plan: what was asked for.
        runs: in the plan's order.
    """

    id: str
    device: str
    simulated: bool
    plan: SweepPlan
    runs: tuple[Run, ...]


class _Header(msgspec.Struct):
    """What a document and the first line of a results file have in common."""

    sweep_id: str
    device: Device
    plan: SweepPlan
    runs: tuple[Run, ...] = ()


class _Line(msgspec.Struct):
    run: Run


def find_sweep(word: str, args: argparse.Namespace) -> SweepRuns:
    """Return the sweep that a word of the command line means.

    Raises:
        PowerlabError: there is none, or the file is none of powerlab's.
    """
    if Path(word).is_file():
        return _from_file(Path(word))
    if args.server is not None:
        return _from_record(requests.find_sweep(connect(args.server), word), args)
    kept = state_dir() / "sweeps" / f"{Path(word).name}.ndjson"
    has_database = importlib.util.find_spec("sqlalchemy") is not None and default_store().is_file()
    if args.database is None and kept.is_file() and not has_database:
        return _from_file(kept)
    from powerlab.store.reads import queries

    with closing(open_existing(args.database)) as store, store.session() as session:
        record = requests.only_sweep(queries.list_sweeps(session), word)
    return _from_record(record, args)


def _from_record(record: SweepRecord, args: argparse.Namespace) -> SweepRuns:
    wanted = argparse.Namespace(server=args.server, database=args.database, sweep=record.id, model=None, verdict=None)
    return _ordered(record.id, record.device_name, record.simulated, record.plan, list(stored_runs(wanted)))


def _from_file(path: Path) -> SweepRuns:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise PowerlabError(f"{path} cannot be read ({error.strerror}); give a sweep that can be.") from error
    first, _, rest = content.partition(b"\n")
    try:
        if first.strip() == b"{":
            header = msgspec.json.decode(content, type=_Header)
            runs = list(header.runs)
        else:
            header = msgspec.json.decode(first, type=_Header)
            runs = [msgspec.json.decode(line, type=_Line).run for line in rest.splitlines() if line.strip()]
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise PowerlabError(
            f"{path} holds no sweep ({error}); give a sweep's identifier, or a file that `powerlab profile` wrote."
        ) from error
    return _ordered(header.sweep_id, header.device.name, header.device.simulated, header.plan, runs)


def _ordered(sweep_id: str, device: str, simulated: bool, plan: SweepPlan, runs: list[Run]) -> SweepRuns:
    in_plan_order(runs, plan)
    return SweepRuns(id=sweep_id, device=device, simulated=simulated, plan=plan, runs=tuple(runs))
