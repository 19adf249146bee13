"""Tuning the convolutions of a model, each distinct shape once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape, conv_shapes
from powerlab.engine.ir.graph import Graph
from powerlab.engine.target.machine import Machine
from powerlab.engine.tuning.kept import Tuned, Tunings, with_tuned
from powerlab.engine.tuning.tuner import Timer, Verdict, tune


class ShapeTuned(Struct, frozen=True, kw_only=True):
    """One shape is done.

    Attributes:
        shape: the convolution.
        layers: how many of the model's layers have it.
        verdict: what was found.
        tunings: all that is known now.
    """

    shape: ConvShape
    layers: int
    verdict: Verdict
    tunings: Tunings


def model_shapes(graph: Graph) -> dict[ConvShape, int]:
    """Return the distinct shapes of the convolutions of an optimised graph, and how many layers have each."""
    return dict(Counter(conv_shapes(graph).values()))


def tune_model(graph: Graph, machine: Machine, tunings: Tunings, timer: Timer) -> Iterator[ShapeTuned]:
    """Tune the convolutions of an optimised graph, and yield after each shape.

    A shape whose algorithm was decided with another number of threads keeps it; only its cut is tuned.
    """
    for shape, layers in model_shapes(graph).items():
        known = tunings.by_shape().get(shape)
        others = set(known.cuts) - {machine.threads} if known else set()
        verdict = tune(shape, machine, timer, known.algorithm if known and others else None)
        cuts = {machine.threads: verdict.choice}
        tunings = with_tuned(tunings, Tuned(shape=shape, algorithm=verdict.choice.algorithm, cuts=cuts))
        yield ShapeTuned(shape=shape, layers=layers, verdict=verdict, tunings=tunings)
