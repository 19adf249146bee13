"""``powerlab layers``: time and energy of every layer of a model."""

from __future__ import annotations

import argparse

from powerlab.cli.arguments.host import add_host_arguments
from powerlab.domain.training import OPTIMIZERS
from powerlab.domain.workload import WorkloadKind

DESCRIPTION = """\
Measure time, energy and power of every layer of a model on the built-in engine, and show it on the processor's
roofline. A layer is a step of the engine's plan, in which a convolution, its normalisation, its activation and a
residual are fused. Each layer is repeated on its own, in an order shuffled by --seed, until its power is steady; the
whole model is measured in between, to compare with the sum. With --workload train a layer has a row for its forward
pass, one for its gradients and one for the update of its weights; such profiles are not kept in the database.
"""

EPILOG = """\
exit status: 0 success; 1 completed, but some figures are void; 2 invalid request; 130 interrupted (the power mode is
restored, finished profiles are saved)

examples:
  powerlab layers resnet50 --threads 2
  powerlab layers mobilenetv2 --seconds-per-layer 1 --trace trace.json
                                                    open trace.json in https://ui.perfetto.dev
  powerlab layers resnet18 --workload train --batch 8
  powerlab layers resnet50 --board jetson-agx-xavier --modes MAXN,MODE_15W --json > layers.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("model", metavar="MODEL", help="a zoo name, or the path of an ONNX file")
    what = parser.add_argument_group("what is run")
    what.add_argument("--threads", metavar="N", type=int, help="compute threads (default: all cores)")
    what.add_argument(
        "--processor", metavar="NAME", default="cpu", help="what computes: cpu, or gpu by Vulkan (default: cpu)"
    )
    what.add_argument(
        "--workload",
        choices=[kind.value for kind in WorkloadKind],
        default=WorkloadKind.INFERENCE.value,
        help="inference, or train: a row for each layer's forward pass, gradients and update (default: inference)",
    )
    what.add_argument(
        "--optimizer",
        metavar="NAME",
        choices=OPTIMIZERS,
        help=f"how training moves the weights: {', '.join(OPTIMIZERS)} (default: {OPTIMIZERS[0]})",
    )
    what.add_argument("--batch", metavar="N", type=int, default=1, help="images per inference (default: 1)")
    what.add_argument(
        "--modes",
        metavar="NAME,...",
        default="current",
        help="power modes, or all; one profile each (default: current)",
    )
    what.add_argument(
        "--seconds-per-layer",
        metavar="S",
        type=float,
        help="how long each layer is recorded, up to three times (default: 2, or longer for a slow sensor)",
    )
    what.add_argument(
        "--idle", metavar="S", type=float, default=3.0, help="seconds of idle baseline before and after (default: 3)"
    )
    what.add_argument("--seed", metavar="N", type=int, default=0, help="seed of the shuffled layer order (default: 0)")
    add_host_arguments(parser)
    out = parser.add_argument_group("results")
    out.add_argument(
        "--database",
        metavar="PATH_OR_URL",
        help="database to add the profile to, or none (default: the local one, where the server extra is installed)",
    )
    out.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    out.add_argument("--output", metavar="FILE", help="write that JSON document to FILE as well")
    out.add_argument("--trace", metavar="FILE", help="write one inference to FILE, for Perfetto and chrome://tracing")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.commands.layers.measure import layers

    return layers(args)
