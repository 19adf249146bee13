"""Ways to choose the range that a tensor's integers span; a new one is a file here and a line in :data:`METHODS`."""

from __future__ import annotations

from powerlab.engine.quantization.methods.base import Method
from powerlab.engine.quantization.methods.entropy import ENTROPY
from powerlab.engine.quantization.methods.minmax import MINMAX
from powerlab.engine.quantization.methods.percentile import PERCENTILE

METHODS: dict[str, Method] = {"minmax": MINMAX, "percentile": PERCENTILE, "entropy": ENTROPY}
"""Name → method."""
