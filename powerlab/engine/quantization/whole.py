"""From a prepared network and data to the quantized network: calibrated, equalised where that helps, searched."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from powerlab.engine.ir.graph import Graph
from powerlab.engine.quantization.calibrate import Calibration, calibrate
from powerlab.engine.quantization.equalize import equalized
from powerlab.engine.quantization.observe import Arrays
from powerlab.engine.quantization.quantize import Options
from powerlab.engine.quantization.sensitivity import Result, Search

WORTH_DB = 1.0
"""What equalisation must gain to be used: less is chance."""


def quantize_network(
    graph: Graph,
    batches: Sequence[Arrays] | None,
    method: str,
    *,
    compared: Sequence[Arrays],
    least_sqnr_db: float | None = None,
    narrow_weights: int = 1,
    attention: bool = False,
) -> tuple[Result, Calibration]:
    """Return the quantized network, what it keeps of the signal, and its calibration.

    Args:
        graph: from :func:`powerlab.engine.quantization.prepare.prepared_for_quantization`.
        batches: to calibrate with; None: seeded random numbers.
        method: how ranges are chosen.
        compared: inputs on which the quantized network is compared with the float one.
        least_sqnr_db: what the outputs keep at least; None: whatever is left.
        narrow_weights: how many products of weights fit 16 bits, at least.
        attention: whether products of two computed matrices are quantized, too.

    Raises:
        PowerlabError: the data are wrong or too few, or not that much can be kept.
    """
    calibration = calibrate(graph, batches, method)
    options = Options(narrow_weights=narrow_weights, attention=attention)
    search = Search(graph, calibration, compared, options)
    even = equalized(graph)
    if even is not graph:
        other = replace(calibrate(even, batches, method), equalized=True)
        tried = Search(even, other, compared, options)
        if tried.whole.sqnr_db > search.whole.sqnr_db + WORTH_DB:
            search, calibration = tried, other
    return search.until(least_sqnr_db), calibration
