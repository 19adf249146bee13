"""``powerlab learn``: the energy of training to a stated accuracy."""

from __future__ import annotations

import argparse

from powerlab.cli.arguments.stored_runs import add_source_arguments

DESCRIPTION = """\
Say how many joules training takes to a stated accuracy on labelled images, with the model, batch size, optimizer and
slices of a stored run that trained. The model is trained here from the weights it has, once for each seed, until it is
right often enough on images that are held back; the steps that this takes times the run's energy of a step is the
answer. A seed that does not get there is said, and then there is no answer.
"""

EPILOG = """\
exit status: 0 success; 1 some seeds did not reach the accuracy; 2 the run infers, is of another engine or has no
energy, or the request is invalid

The file holds the images under any name (under the inputs' names, where a model has several) and their classes, from 0,
as labels: numpy.savez("images.npz", x=images, labels=classes). Testing takes energy, too, which is not counted: nobody
measured it.

examples:
  powerlab learn 3f2a91c0 --labelled-images digits.npz --accuracy 95%
  powerlab learn 3f2a91c0 --labelled-images digits.npz --accuracy 95% --rate 0.005 --seeds 20 --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("run_id", metavar="RUN", help="id of a run that trained, or a unique prefix of it")
    parser.add_argument("--labelled-images", metavar="FILE", required=True, help=".npz file of images and labels")
    parser.add_argument("--accuracy", metavar="PERCENT", required=True, help="what is to be reached, such as 95%%")
    parser.add_argument("--rate", metavar="R", type=float, help="learning rate (default: the optimizer's usual one)")
    parser.add_argument("--seeds", metavar="N", type=int, default=10, help="trainings, 3 or more (default: 10)")
    parser.add_argument("--every", metavar="N", type=int, default=5, help="steps between two tests (default: 5)")
    parser.add_argument("--most-steps", metavar="N", type=int, default=1000, help="give up after (default: 1000)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.commands.learn.report import learn

    return learn(args)
