"""What is run: a model at a precision and batch size in a scenario."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Scenario(StrEnum):
    """MLPerf's scenarios, as far as they are built."""

    SINGLE_STREAM = "single-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A model and how it is fed.

    Attributes:
        model: a name of the zoo, or the path of an ONNX file.
        batch_size: images per inference.
        precision: ``fp32``.
        scenario: how inferences follow each other.
        engine: the name of the backend that runs it.
    """

    model: str
    batch_size: int
    precision: str = "fp32"
    scenario: Scenario = Scenario.SINGLE_STREAM
    engine: str = "builtin"
