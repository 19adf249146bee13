"""``powerlab profile``: sweep this machine, or a simulated board, and say what is best."""

from __future__ import annotations

import argparse

from powerlab.cli.arguments.carbon_and_cost import add_factor_arguments
from powerlab.cli.arguments.host import add_host_arguments
from powerlab.cli.arguments.plan import add_plan_arguments

DESCRIPTION = """\
Run models over threads, batch sizes and power modes; print latency, throughput, watts and images per joule of every
point with 95 % intervals, and the best points. Runs are repeated in an order shuffled by --seed. Every finished run
is saved at once, in a results file and, with the server extra, in the database.
"""

EPILOG = """\
exit status: 0 every run is usable; 1 some runs failed or are void; 2 invalid request; 130 interrupted (finished runs
are saved, the power mode is restored)

examples:
  powerlab profile resnet50
  powerlab profile resnet50 mobilenetv2 --threads 1,2 --batch 1,4 --repeats 5
  powerlab profile model.onnx --modes all --json > sweep.json
  powerlab profile resnet50 --board jetson-agx-xavier --modes MAXN,MODE_15W
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_plan_arguments(parser, "a zoo name, or the path of an ONNX file", ("--processor", "--device"))
    parser.add_argument(
        "--labelled-images",
        metavar="FILE.npz",
        help="say how often each engine and precision is right: an array of images by each of the model's inputs, and "
        "their classes as `labels`, from 0",
    )
    add_host_arguments(parser)
    out = parser.add_argument_group("results")
    out.add_argument(
        "--database",
        metavar="PATH_OR_URL",
        help="database to add the sweep to, or none (default: the local one, where the server extra is installed)",
    )
    out.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    out.add_argument("--output", metavar="FILE", help="write that JSON document to FILE as well")
    add_factor_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.commands.profile.measure import profile

    return profile(args)
