"""``powerlab study``: repeat a published experiment on this device."""

from __future__ import annotations

import argparse

from powerlab.cli.arguments.host import add_host_arguments
from powerlab.domain.rigour import Rigour

DESCRIPTION = """\
Repeat a published experiment: run its sweeps on this machine, or on a simulated board, and show our figures beside the
published ones. They are never mixed: each says where it comes from. What cannot be repeated here, and why, is said
before anything is measured.
"""

EPILOG = """\
exit status: 0 every run is usable; 1 some runs failed or are void; 2 there is no such study, or nothing of it can be
repeated here; 130 interrupted (what was measured is kept, the power mode is restored)

--output DIR gets NAME.tex (a table to \\input, with booktabs), NAME.html and NAME.json.

examples:
  powerlab study list                              what there is to repeat
  powerlab study tegra-x1-alexnet --plan           what would be run, and what cannot be
  powerlab study tegra-x1-alexnet --quick --output results
  powerlab study xavier-resnet50 --board jetson-agx-xavier --modes MAXN,MODE_15W
  powerlab study armv8-cluster --model yolov3=my_yolov3.onnx
  powerlab study dlbench --quick --engine builtin,onnxruntime
  powerlab study aa                                does this device tell a point from itself?
"""

LIST = "list"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("name", metavar="NAME", help="a study, or list for all of them")
    parser.add_argument("--plan", action="store_true", help="say what would be run and what cannot be, and end")
    care = parser.add_argument_group("how carefully")
    care.add_argument("--rigour", choices=list(Rigour), default=None, help="times and counts (default: standard)")
    care.add_argument("--quick", action="store_true", help="--rigour quick, with the study's smaller batches")
    what = parser.add_argument_group("what is run")
    what.add_argument("--modes", metavar="NAME,...", help="these power modes instead of the study's")
    what.add_argument("--engine", metavar="NAME,...", help="of the study's engines, these alone")
    what.add_argument(
        "--model",
        metavar="NAME=FILE",
        action="append",
        default=[],
        help="an ONNX file for one of the study's networks; may be repeated",
    )
    add_host_arguments(parser)
    out = parser.add_argument_group("results")
    out.add_argument("--output", metavar="DIR", help="write a LaTeX table, an HTML page and JSON into this folder")
    out.add_argument("--database", metavar="PATH_OR_URL", help="database to add the sweeps to, or none")
    out.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.commands.study import repeat

    return repeat.list_all(args) if args.name == LIST else repeat.repeat(args)
