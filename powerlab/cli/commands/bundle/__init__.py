"""``powerlab bundle``: a sweep as one file that anyone can check and repeat."""

from __future__ import annotations

import argparse

from powerlab.cli.arguments.host import add_host_arguments
from powerlab.cli.arguments.stored_runs import add_source_arguments

DESCRIPTION = """\
Pack a sweep into one file: plan, raw records, environment, models, and the SHA-256 of each. `verify` recomputes every
figure from it on any machine, without a database or server; `rerun` measures the plan again here, and says which
figures agree.
"""

EPILOG = """\
exit status: 0 packed; every figure is reproduced; every figure agrees. 1 a figure is not reproduced, or differs, or
runs failed. 2 invalid request, or the file is no bundle or was changed. 130 rerun interrupted

examples:
  powerlab bundle create 3f2a91c0
  powerlab bundle create 3f2a91c0 --output resnet50.zip --with-model --from http://server:8765
  powerlab bundle verify resnet50.zip
  powerlab bundle rerun resnet50.zip
  powerlab bundle rerun resnet50.zip --board jetson-agx-xavier
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    create = actions.add_parser(
        "create", help="pack a sweep", description="Pack a sweep of a database or a server into one file."
    )
    create.add_argument("sweep", metavar="SWEEP", help="sweep id, or its first digits")
    create.add_argument("-o", "--output", metavar="FILE", help="the bundle (default: SWEEP.powerlab.zip here)")
    create.add_argument(
        "--with-model", action="store_true", help="include model files however large (default: up to 8 MiB)"
    )
    add_source_arguments(create)
    verify = actions.add_parser(
        "verify",
        help="recompute every figure of a bundle",
        description="Check the hashes of a bundle and recompute every figure from its raw records.",
    )
    verify.add_argument("bundle", metavar="FILE", help="the bundle")
    verify.add_argument("--json", action="store_true", help="print JSON")
    rerun = actions.add_parser(
        "rerun",
        help="measure a bundle's plan again and compare",
        description="Measure a bundle's plan again on this machine or a board, and say which figures agree. A bundle "
        "of a simulated board is repeated on that board.",
    )
    rerun.add_argument("bundle", metavar="FILE", help="the bundle")
    rerun.add_argument(
        "--model",
        metavar="NAME=FILE",
        action="append",
        default=[],
        help="an ONNX file for a model that is not in the bundle; its SHA-256 must be the same; may be repeated",
    )
    add_host_arguments(rerun)
    rerun.add_argument("--database", metavar="PATH_OR_URL", help="database to add the sweep to, or none")
    rerun.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.action == "create":
        from powerlab.cli.commands.bundle.create import create

        return create(args)
    if args.action == "verify":
        from powerlab.cli.commands.bundle.check import check

        return check(args)
    from powerlab.cli.commands.bundle.rerun import rerun

    return rerun(args)
