"""How exact the outputs of a low precision are, beside fp32's for the same inputs, and how often labels are met."""

from __future__ import annotations

import math
from dataclasses import dataclass

DEFAULT_LEAST_SQNR_DB = 20.0
"""Errors of a tenth of the outputs, as root mean square: networks keep their answers well above it, and lose them soon
below (Nagel et al., *A White Paper on Neural Network Quantization*, arXiv 2106.08295, compare the two)."""

HIGHEST_SQNR_DB = 20 * math.log10(2**24)
"""144.5 dB: float32 has 24 bits, so numbers that are the same to the last one are told apart no further."""


def sqnr_db(signal: float, noise: float) -> float:
    """Return the ratio of the power of a signal to that of its error in dB, within :data:`HIGHEST_SQNR_DB` of 0.

    The lowest value stands for errors in what should be 0, and for an error that is no number.
    """
    if noise == 0:
        return HIGHEST_SQNR_DB
    if not math.isfinite(noise) or signal == 0:
        return -HIGHEST_SQNR_DB
    return min(HIGHEST_SQNR_DB, max(-HIGHEST_SQNR_DB, 10 * math.log10(signal / noise)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputAccuracy:
    """What comparing the outputs for seeded inputs with fp32's found.

    Attributes:
        images: inputs that were compared.
        sqnr_db: mean over the images of the signal to quantisation noise ratio in dB, ten times the decimal logarithm
            of the sum of squared outputs over the sum of squared errors; of several outputs that of the worst.
        sqnr_half_width_db: half of its 95 % interval (Student's t over the images); None of a single image.
        agreeing: images for which the largest of the outputs is the same; None where no output is a list of classes.
        least_sqnr_db: what the plan asks for at least.
    """

    images: int
    sqnr_db: float
    sqnr_half_width_db: float | None = None
    agreeing: int | None = None
    least_sqnr_db: float = DEFAULT_LEAST_SQNR_DB


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledAccuracy:
    """What comparing the outputs for labelled images with their labels found.

    Attributes:
        images: images that were classified.
        right: those whose largest output is the label's.
        sha256: of the file they came from.
    """

    images: int
    right: int
    sha256: str
