"""``powerlab best``: the operating point for a goal under bounds."""

from __future__ import annotations

import argparse

from powerlab.cli.arguments.operating_point import add_question_arguments, question_from, question_words
from powerlab.cli.arguments.stored_runs import add_source_arguments

DESCRIPTION = """\
Find the operating point (threads, batch size, power mode...) for a goal under bounds, among the points that were
measured: what it is tied with, what each bound costs, and what changes at other arrival rates.
"""

EPILOG = """\
exit status: 0 success; 2 no point keeps all bounds (the message says which bound is missed and by how much), no run is
valid, or there is no such sweep or model

A bound is kept only if the whole 95 % interval keeps it. Energy at an arrival rate includes the idle power between
images, in the same power mode; queueing is not predicted. A MODEL stands for all its stored runs, each device by
itself. Units may be left out: ms, W, img/s, MB, °C, Wh.

examples:
  powerlab best SWEEP                          least energy per image, always busy
  powerlab best SWEEP --rate 25 --p99 40ms     25 images a second, answered within 40 ms
  powerlab best SWEEP --for throughput --power 10W --memory 1GB --temperature 70
  powerlab best resnet50 --for battery --rate 2 --battery 50Wh
  powerlab apply SWEEP --rate 25 --p99 40ms    set the power mode of that point on this device
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "sweep", metavar="SWEEP|MODEL", help="a sweep's id or its first digits, a results file, or a model's name"
    )
    add_question_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    import msgspec

    from powerlab.analysis.operating_point.devices import of_devices
    from powerlab.cli import EXIT_OK
    from powerlab.cli.output.operating_points import show
    from powerlab.cli.stored.measured_sweeps import find_measured

    question = question_from(args)
    found = of_devices(find_measured(args.sweep, args), question)
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        show(found.items, question, f"powerlab apply {args.sweep} {question_words(args)}".rstrip())
    return EXIT_OK
