"""The goal, the bounds and the arrival rate of ``powerlab best`` and ``powerlab apply``."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from powerlab.analysis.operating_point.question import Question

_BOUNDS = {
    "p99": ("30ms", "highest 99th percentile latency"),
    "power": ("10W", "highest power while running"),
    "throughput": ("25/s", "least img/s when always busy"),
    "memory": ("1GB", "highest peak memory of the worker process"),
    "temperature": ("70C", "highest temperature at the end of a run"),
    "sqnr": ("30dB", "least signal to quantisation noise of the outputs; fp32 keeps it"),
    "accuracy": ("90%", "least top-1 accuracy on the labelled images of profile --labelled-images"),
    "agreement": ("99%", "least top-1 agreement with fp32; fp32 keeps it"),
}
_GOALS = ("energy", "throughput", "latency", "battery")


def add_question_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--for",
        dest="goal",
        metavar="GOAL",
        choices=_GOALS,
        help="least energy per image, highest throughput, lowest p99 latency, or longest battery life, which takes "
        f"--rate: {', '.join(_GOALS)} (default: energy; latency where power was not measured)",
    )
    bounds = parser.add_argument_group("bounds (kept only if the whole 95 % interval keeps them)")
    for name, (example, words) in _BOUNDS.items():
        bounds.add_argument(f"--{name}", metavar=example, help=words)
    arrivals = parser.add_argument_group("arrivals")
    arrivals.add_argument(
        "--rate", metavar="25/s", help="images that arrive in a second: energy includes the idle time between them"
    )
    arrivals.add_argument("--battery", metavar="50Wh", help="show hours on a battery that holds so much")
    parser.add_argument("--device", metavar="NAME", help="of a MODEL's runs, only those of this device")


def question_from(args: argparse.Namespace) -> Question:
    """Return what the options ask.

    Raises:
        PowerlabError: an option makes no sense.
    """
    from powerlab.analysis.operating_point.question import parse_question

    bounds = {name: getattr(args, name) for name in _BOUNDS}
    return parse_question(args.goal, bounds, args.rate, args.battery)


def question_words(args: argparse.Namespace) -> str:
    """Return the options that choose a point, as they would be typed again."""
    options = {"for": args.goal, **{name: getattr(args, name) for name in (*_BOUNDS, "rate")}, "device": args.device}
    return " ".join(f"--{name} {shlex.quote(value)}" for name, value in options.items() if value is not None)
