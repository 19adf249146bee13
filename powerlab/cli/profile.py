"""``powerlab profile``: sweep this machine, or a simulated board, and say what is best."""

from __future__ import annotations

import argparse

from powerlab.cli.hosts import add_host_arguments

_DESCRIPTION = """\
Run models over threads, batch sizes and power modes; print latency, throughput, watts and images per joule of every
point with 95 % intervals, and which point is best at what. Runs are repeated in an order shuffled by --seed. Every
finished run is kept at once: in a results file, and in the database where the server extra is installed.
"""

_EPILOG = """\
exit status: 0 every run is usable; 1 some runs failed or are void; 2 the request cannot be carried out;
130 interrupted (what was measured is kept, the power mode is restored)

examples:
  powerlab profile resnet50
  powerlab profile resnet50 mobilenetv2 --threads 1,2 --batch 1,4 --repeats 5
  powerlab profile model.onnx --modes all --json > sweep.json
  powerlab profile resnet50 --board jetson-agx-xavier --modes MAXN,MODE_15W
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "profile",
        help="sweep models over threads, batch sizes and power modes",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument("models", nargs="+", metavar="MODEL", help="a zoo name, or the path of an ONNX file")
    plan = parser.add_argument_group("what is run")
    plan.add_argument("--threads", metavar="N,...", help="thread counts (default: 1 and all cores)")
    plan.add_argument("--batch", metavar="N,...", default="1", help="images per inference (default: 1)")
    plan.add_argument(
        "--modes",
        metavar="NAME,...",
        default="current",
        help="power modes, or all (default: current; see powerlab modes)",
    )
    plan.add_argument("--repeats", metavar="N", default="3", help="runs of each point, at least 3 (default: 3)")
    plan.add_argument("--duration", metavar="S", default="5", help="timed seconds of a run (default: 5)")
    plan.add_argument("--warm-up", metavar="S", default="1", help="untimed seconds before it (default: 1)")
    plan.add_argument("--idle", metavar="S", default="2", help="seconds of the idle baseline in each mode (default: 2)")
    plan.add_argument("--seed", metavar="N", default="0", help="makes the order of the runs repeatable (default: 0)")
    plan.add_argument("--engine", metavar="NAME", default="builtin", help="what runs the models (default: builtin)")
    add_host_arguments(parser)
    out = parser.add_argument_group("results")
    out.add_argument(
        "--store",
        metavar="PATH_OR_URL",
        help="database to add the sweep to, or none (default: the local one, where the server extra is installed)",
    )
    out.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    out.add_argument("--output", metavar="FILE", help="write that JSON document to FILE as well")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.profiling import profile

    return profile(args)
