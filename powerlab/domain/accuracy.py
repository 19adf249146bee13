"""How exact the outputs of a low precision are, beside fp32's for the same inputs."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_LEAST_SQNR_DB = 20.0
"""Errors of a tenth of the outputs, as root mean square: networks keep their answers well above it, and lose them soon
below (Nagel et al., *A White Paper on Neural Network Quantization*, arXiv 2106.08295, compare the two)."""


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
