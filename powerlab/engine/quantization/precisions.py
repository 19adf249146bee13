"""The precisions a model can be run in, and a loaded graph in each of them."""

from __future__ import annotations

from pathlib import Path

from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.ir.graph import Graph
from powerlab.engine.quantization.calibrate import Calibration, calibrate, image_shapes
from powerlab.engine.quantization.equalize import equalized
from powerlab.engine.quantization.kept import keep_calibration, kept_calibration
from powerlab.engine.quantization.prepare import prepared_for_quantization
from powerlab.engine.quantization.quantize import Options, is_calibrated, quantize_graph
from powerlab.engine.quantization.weights import with_rounded_weights
from powerlab.engine.target.tiers import choose_tier

WEIGHT_ONLY = ("int8w", "int4w", "fp16w")
PRECISIONS = ("fp32", "bf16", "fp16", "int8", *WEIGHT_ONLY)


def check_precision(precision: str) -> None:
    """Raise PowerlabError where there is no such precision."""
    if precision not in PRECISIONS:
        raise PowerlabError(f"there is no precision {str(precision)[:40]!r}; known are {', '.join(PRECISIONS)}.")


def in_precision(graph: Graph, model: str | Path, precision: str) -> Graph:
    """Return a loaded graph in a precision.

    For int8, the calibration that is kept of the model decides its scales. Where there is none, the model is calibrated
    with seeded random inputs of this size, one image a batch, and that is kept for this size. Its weights are narrow
    (:mod:`.quantize`) where the processor has no dot products of bytes: exact sums of others are as slow as float32
    there, and other engines' overflow.

    Raises:
        PowerlabError: there is no such precision, or the model cannot be quantized.
    """
    check_precision(precision)
    if precision in ("fp32", "bf16", "fp16"):
        return graph
    prepared = prepared_for_quantization(graph)
    if precision in WEIGHT_ONLY:
        return with_rounded_weights(prepared, precision)
    calibration = _calibration(graph, prepared, model)
    options = Options(narrow_weights=4 if choose_tier().widens_bytes else 1)
    return quantize_graph(equalized(prepared) if calibration.equalized else prepared, calibration, options).graph


def _calibration(graph: Graph, prepared: Graph, model: str | Path) -> Calibration:
    kept = kept_calibration(model, image_shapes(graph))
    # One by random numbers may be of a powerlab that prepared the network otherwise: it is made anew.
    if kept is not None and (not kept.random or is_calibrated(prepared, kept)):
        return kept
    made = calibrate(_of_one_image(graph, prepared, model))
    keep_calibration(model, made)
    return made


def _of_one_image(graph: Graph, prepared: Graph, model: str | Path) -> Graph:
    """Return the prepared graph for batches of one, so that scales are the same whatever the batch size."""
    if all(info.shape[:1] == (1,) for info in graph.inputs):
        return prepared
    shapes = {info.name: (1, *info.shape[1:]) for info in graph.inputs if info.shape}
    try:
        return prepared_for_quantization(load_graph(model, shapes))
    except PowerlabError:
        return prepared  # its batch size is fixed
