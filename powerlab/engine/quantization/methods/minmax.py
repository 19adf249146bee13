"""All numbers that were seen lie in the range: nothing saturates, and outliers cost resolution."""

from __future__ import annotations

from powerlab.engine.quantization.methods.base import Method

MINMAX = Method(lambda seen: (seen.low, seen.high), counts=False)
