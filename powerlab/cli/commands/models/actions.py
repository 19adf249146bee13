"""Carries out ``powerlab models``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.text import Text

from powerlab.analysis.wording import counted
from powerlab.cli import EXIT_OK
from powerlab.cli.arguments.server import connect
from powerlab.cli.commands.models.file_check import check_model_file, default_name
from powerlab.cli.output.console import plain_table, print_neatly, table_console
from powerlab.cli.stored.said import say
from powerlab.client.models import ModelApi, Moved
from powerlab.protocol.model_records import ModelRecord
from powerlab.protocol.wire import encode
from powerlab.sources.server import ServerSource


def upload(args: argparse.Namespace) -> int:
    """Send a file."""
    path = Path(args.file)
    note = check_model_file(path)
    if note is not None:
        print(f"powerlab: {note}", file=sys.stderr)
    with _progress(path.name) as moved:
        record = ModelApi(connect(args.server).transport).upload(path, args.name or default_name(path), moved)
    return _print(record, args)


def list_all(args: argparse.Namespace) -> int:
    """List the models of a server."""
    client = connect(args.server)
    found = list(ModelApi(client.transport).all(name=args.name))
    say(ServerSource(client), counted(len(found), "model"))
    if args.json:
        print(encode(found).decode())
        return EXIT_OK
    table = plain_table("model", "bytes", "uploaded")
    for one in found:
        table.add_row(Text(one.reference), str(one.byte_count), f"{one.completed_at:%Y-%m-%d %H:%M} UTC")
    print_neatly(table_console(), table)
    return EXIT_OK


def show(args: argparse.Namespace) -> int:
    """Show one model."""
    client = connect(args.server)
    record = ModelApi(client.transport).find(args.model)
    say(ServerSource(client), f"model {record.reference}")
    return _print(record, args)


def download(args: argparse.Namespace) -> int:
    """Fetch a model's file."""
    api = ModelApi(connect(args.server).transport)
    record = api.find(args.model)
    path = Path(args.output or f"{record.name}.onnx")
    with _progress(path.name) as moved:
        api.download(record, path, moved)
    print(f"{path}: {record.byte_count} bytes")
    return EXIT_OK


def _print(record: ModelRecord, args: argparse.Namespace) -> int:
    if args.json:
        print(encode(record).decode())
        return EXIT_OK
    print(record.reference)
    print(f"{record.byte_count} bytes; sweep it with: powerlab sweep create {record.reference}")
    return EXIT_OK


@contextmanager
def _progress(name: str) -> Iterator[Moved]:
    """Show a bar on standard error while bytes move."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(name, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
