"""``powerlab scaling``: a step of training on many nodes, simulated."""

from __future__ import annotations

import argparse

from powerlab.analysis.scaling.links import LINKS
from powerlab.cli.arguments.stored_runs import add_source_arguments

DESCRIPTION = """\
Simulate data-parallel training on many nodes like the one that a stored run trained on: its recorded steps, drawn at
random for each node, and ring all-reduce of the gradients over links of a stated latency and bandwidth. Every node has
the run's batch size. All figures are simulated, whatever the run's are: nothing of this was measured on several nodes.
"""

EPILOG = f"""\
exit status: 0 success; 2 the run infers or has no recorded steps, or the request is invalid

links: {", ".join(LINKS)}, typical figures; or latency and bandwidth as in 30us:1.1GB/s. While a node waits for
gradients it draws between idle power and what it draws while it computes: the interval of the energy holds both.
Switches are not in it.

examples:
  powerlab scaling 3f2a91c0
  powerlab scaling 3f2a91c0 --nodes 1,8,64 --link 10gbe,30us:1.1GB/s
  powerlab scaling 3f2a91c0 --reduce after --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("run_id", metavar="RUN", help="id of a run that trained, or a unique prefix of it")
    parser.add_argument(
        "--nodes", metavar="N,...", default="1,2,4,8,16,32,64", help="numbers of nodes (default: 1,2,4,8,16,32,64)"
    )
    parser.add_argument("--link", metavar="NAME,...", default="10gbe", help="links between them (default: 10gbe)")
    parser.add_argument(
        "--reduce",
        choices=("overlapped", "after"),
        default="overlapped",
        help="add gradients up in buckets of 4 MB while the backward pass goes on, or after it (default: overlapped)",
    )
    parser.add_argument(
        "--gradient-mb", metavar="MB", type=float, help="size of the gradients, where the model cannot be read here"
    )
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="seed of the drawn steps (default: 0)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.commands.scaling.report import scaling

    return scaling(args)
