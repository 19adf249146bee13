"""Calibration: the float network runs on some inputs, and the ranges of its tensors are noted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct, field

from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.ir.graph import Graph, quoted
from powerlab.engine.quantization.layers import has_channels, layers_of, quantized_tensors
from powerlab.engine.quantization.methods import METHODS
from powerlab.engine.quantization.methods.base import BINS, Seen
from powerlab.engine.quantization.observe import Arrays, Observed

RANDOM_IMAGES = 32
LEAST_IMAGES = 8
"""Fewer say nothing of the range of a tensor."""

SEED = 20_260_101


class Calibration(Struct, frozen=True, kw_only=True):
    """What is known of a network's tensors.

    Attributes:
        method: how ranges were chosen.
        images: how many inputs were seen.
        random: whether those were random numbers, because nobody gave data.
        ranges: tensor -> the numbers that its integers span, at least.
        equalized: whether that is of the network with its channels evened out.
        means: input of a convolution or a Gemm with weights -> the mean of each channel, which axis 1 counts.
        shapes: input -> the shape of one image of it.
    """

    method: str
    images: int
    random: bool
    ranges: Mapping[str, tuple[float, float]]
    means: Mapping[str, tuple[float, ...]]
    equalized: bool = False
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def random_batches(graph: Graph, images: int = RANDOM_IMAGES, seed: int = SEED) -> list[Arrays]:
    """Return seeded random inputs of a graph: at least so many images, in as few batches as that takes."""
    shapes = {info.name: info.shape for info in graph.inputs}
    dtypes = {info.name: graph.outside.get(info.name, info.dtype) for info in graph.inputs}
    count = -(-images // batch_of(graph))
    return [synthetic_inputs(shapes, seed + index, dtypes) for index in range(count)]


def batch_of(graph: Graph) -> int:
    """Return how many images a batch of a graph has: the first axis of its first input."""
    return graph.inputs[0].shape[0] if graph.inputs and graph.inputs[0].shape else 1


def image_shapes(graph: Graph) -> dict[str, tuple[int, ...]]:
    """Return the shape of one image of each input, whatever the batch."""
    return {info.name: (1, *info.shape[1:]) if info.shape else () for info in graph.inputs}


def checked_batches(graph: Graph, batches: Sequence[Arrays]) -> Sequence[Arrays]:
    """Return inputs that a network can be calibrated with.

    Raises:
        PowerlabError: there are too few, an input is missing, or has another shape, or holds what is no number.
    """
    for index, inputs in enumerate(batches, start=1):
        for info in graph.inputs:
            if info.name not in inputs:
                raise PowerlabError(
                    f"calibration batch {index} lacks the input {quoted(info.name)}; give an array for each input."
                )
            value = inputs[info.name]
            if value.shape != info.shape:
                raise PowerlabError(
                    f"calibration batch {index} has {quoted(info.name)} in the shape {value.shape}, but the model "
                    f"takes {info.shape}; give data of that shape."
                )
            if value.dtype.kind == "f" and not np.all(np.isfinite(value)):
                raise PowerlabError(
                    f"calibration batch {index} holds infinite numbers or NaN in {quoted(info.name)}; leave them out."
                )
    images = len(batches) * batch_of(graph)
    if images < LEAST_IMAGES:
        raise PowerlabError(
            f"there are {images} calibration images, too few to know the range of a tensor; give {LEAST_IMAGES} or "
            "more."
        )
    return batches


def calibrate(
    graph: Graph, batches: Sequence[Arrays] | None = None, method: str = "minmax", threads: int | None = None
) -> Calibration:
    """Return the ranges of the tensors of a float network.

    Args:
        graph: from :func:`powerlab.engine.quantization.prepare.prepared_for_quantization`.
        batches: inputs by name; None: seeded random numbers, which say little of the ranges of real data.
        method: a name of ``METHODS``.
        threads: that compute; None: all there are.

    Raises:
        PowerlabError: the data are wrong or too few, or the method is unknown.
    """
    if method not in METHODS:
        raise PowerlabError(f"there is no calibration method {method!r}; known are {', '.join(METHODS)}.")
    random = batches is None
    batches = checked_batches(graph, random_batches(graph) if batches is None else batches)
    layers = layers_of(graph, attention=True)  # whoever quantizes with this calibration says which of them
    names = sorted(quantized_tensors(graph, layers))
    if not names:
        raise PowerlabError(
            f"the model {quoted(graph.name)} has no layer that computes with integers; its weights alone can be "
            "quantized (int8w)."
        )
    weighted = {layer.inputs[0] for layer in layers if layer.weight(graph) and has_channels(layer.node)}
    observed = Observed(graph, [*names, *weighted], threads)
    ends, means = _ends(observed, batches, names, weighted)
    counts = _counts(observed, batches, ends) if METHODS[method].counts else {}
    ranges = {name: METHODS[method].choose(Seen(*ends[name], counts.get(name))) for name in names}
    return Calibration(
        method=method,
        images=len(batches) * batch_of(graph),
        random=random,
        ranges=ranges,
        means=means,
        shapes=image_shapes(graph),
    )


def _ends(
    observed: Observed, batches: Sequence[Arrays], names: Sequence[str], weighted: set[str]
) -> tuple[dict[str, tuple[float, float]], dict[str, tuple[float, ...]]]:
    """Return smallest and largest number of each tensor, and channel means of those that weights multiply."""
    ends: dict[str, tuple[float, float]] = {}
    sums: dict[str, np.ndarray] = {}
    for inputs in batches:
        values = observed.run(inputs)
        for name in names:
            low, high = ends.get(name, (np.inf, -np.inf))
            ends[name] = (min(low, float(values[name].min())), max(high, float(values[name].max())))
            if not np.isfinite(ends[name]).all():
                raise PowerlabError(
                    f"the tensor {quoted(name)} holds infinite numbers or NaN for the calibration data; give "
                    "other data."
                )
        for name in weighted:
            others = (0, *range(2, values[name].ndim))
            sums[name] = sums.get(name, 0.0) + values[name].mean(axis=others, dtype=np.float64)
    return ends, {name: tuple((total / len(batches)).tolist()) for name, total in sums.items()}


def _counts(
    observed: Observed, batches: Sequence[Arrays], ends: Mapping[str, tuple[float, float]]
) -> dict[str, np.ndarray]:
    counts = {name: np.zeros(BINS, np.int64) for name in ends}
    for inputs in batches:
        values = observed.run(inputs)
        for name, (low, high) in ends.items():
            counts[name] += np.histogram(values[name], BINS, (low, high if high > low else low + 1))[0]
    return counts
