"""Carries out ``powerlab scaling``: the run, the simulation, its tables."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
from rich.table import Table
from rich.text import Text

from powerlab.analysis.dimensions import in_words
from powerlab.analysis.scaling.figures import ScaledPoint, scaled_point
from powerlab.analysis.scaling.links import Link, parse_link
from powerlab.analysis.scaling.recorded import recorded_steps
from powerlab.analysis.scaling.simulate import Bucket, simulate
from powerlab.analysis.wording import counted
from powerlab.cli import EXIT_OK
from powerlab.cli.commands.scaling.gradients import BUCKET_BYTES, gradient_buckets
from powerlab.cli.output.console import plain_table, print_neatly, table_console
from powerlab.cli.output.sweep_table import format_figure, format_number
from powerlab.cli.stored.open_source import open_source
from powerlab.cli.stored.said import say_run
from powerlab.domain.counts import counts
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import Metric
from powerlab.domain.run import Run, Verdict
from powerlab.sources.identifiers import run_id

MOST_NODES = 512
_BYTES_PER_MB = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """What ``--json`` prints.

    Attributes:
        run_id: the run whose steps were drawn.
        verdict: of that run.
        what: its point in words.
        provenance: of every figure below.
        gradient_mb: what a step sends.
        buckets: in how many pieces.
        overlapped: whether they are sent while the backward pass goes on.
        seed: drew the steps.
        links: what was simulated.
    """

    run_id: str
    verdict: Verdict
    what: str
    gradient_mb: float
    buckets: int
    overlapped: bool
    seed: int
    links: tuple[OverLink, ...]
    provenance: str = "simulated"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverLink:
    """A kind of link, and what numbers of nodes give over it."""

    link: Link
    points: tuple[ScaledPoint, ...]


def scaling(args: argparse.Namespace) -> int:
    """Simulate and print; returns the exit status."""
    nodes = counts("--nodes", args.nodes)
    if max(nodes) > MOST_NODES:
        raise PowerlabError(f"--nodes got {max(nodes)}; at most {MOST_NODES} are simulated.")
    links = [parse_link(word.strip()) for word in args.link.split(",")]
    with open_source(args) as source:
        run = source.run(run_id(source, args.run_id))
        say_run(source, run)
        recorded = recorded_steps(run, source.recorded(run.id))
    overlapped = args.reduce == "overlapped" and run.point.workload.slices == 1
    buckets = _buckets(args, run, overlapped=overlapped)
    found = Scaling(
        run_id=run.id,
        verdict=run.verdict,
        what=in_words(run.point),
        gradient_mb=sum(bucket.size for bucket in buckets) / _BYTES_PER_MB,
        buckets=len(buckets),
        overlapped=overlapped,
        seed=args.seed,
        links=tuple(
            OverLink(
                link=link,
                points=tuple(
                    scaled_point(run, simulate(recorded, buckets, count, link, seed=args.seed)) for count in nodes
                ),
            )
            for link in links
        ),
    )
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        _show(found, run)
    return EXIT_OK


def _buckets(args: argparse.Namespace, run: Run, *, overlapped: bool) -> Sequence[Bucket]:
    """Return what each step sends; gradients of slices are there after the last of them."""
    if run.point.workload.nodes > 1:
        raise PowerlabError(
            f"run {run.id} is of several devices, which waited for each other; choose one of one device."
        )
    if args.gradient_mb is None:
        try:
            buckets: Sequence[Bucket] = gradient_buckets(run.point.workload.model, run.point.workload.batch_size)
        except PowerlabError as error:
            raise PowerlabError(
                f"{str(error).rstrip('.')}; say how large the gradients are with --gradient-mb."
            ) from error
    else:
        if not (math.isfinite(args.gradient_mb) and args.gradient_mb > 0):
            raise PowerlabError(f"invalid --gradient-mb {args.gradient_mb:g}: give a size above 0.")
        size = args.gradient_mb * _BYTES_PER_MB
        count = math.ceil(size / BUCKET_BYTES)
        buckets = [Bucket(size=size / count, ready_share=(place + 1) / count) for place in range(count)]
    return buckets if overlapped else [replace(bucket, ready_share=1.0) for bucket in buckets]


def _show(found: Scaling, run: Run) -> None:
    console = table_console()
    when = "while the backward pass goes on" if found.overlapped else "after the backward pass"
    print_neatly(
        console,
        Text(f"Simulated from the {run.verdict} run {run.id}: {found.what}.", style="bold"),
        Text(
            f"Nothing below was measured on several nodes. Each step sends {format_number(found.gradient_mb, 4)} MB of "
            f"gradients in {counted(found.buckets, 'bucket')} by ring all-reduce, {when}."
        ),
    )
    for one in found.links:
        console.print()
        print_neatly(console, Text(one.link.words), _table(one.points))
    measured = run.metric("throughput_img_per_s")
    if measured is not None:
        console.print()
        print_neatly(
            console, Text(f"The run itself, on one node: {format_figure(measured)} img/s ({measured.provenance}).")
        )


def _table(points: Sequence[ScaledPoint]) -> Table:
    word = "simulated"
    table = plain_table(
        "nodes", *(f"{name}\n{word}" for name in ("step ms", "waiting ms", "img/s", "efficiency %", "W", "J/img"))
    )
    for one in points:
        table.add_row(
            str(one.nodes),
            format_number(one.step_ms, 4),
            format_number(one.wait_ms, 3),
            format_figure(one.throughput),
            format_number(one.efficiency_percent, 3),
            _figure(one.power),
            _figure(one.energy_per_image),
        )
    return table


def _figure(metric: Metric | None) -> str:
    return format_figure(metric)
