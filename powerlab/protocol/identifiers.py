"""What an identifier, or the beginning of one, stands for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Of what there are identifiers."""

    RUN = "run"
    SWEEP = "sweep"
    POINT = "point"
    JOB = "job"
    CAMPAIGN = "campaign"
    MODEL = "model"
    DEVICE = "device"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifier:
    """Something stored that has an identifier.

    Attributes:
        kind: what it is.
        id: the whole identifier: a UUID, a point's 16 hexadecimal digits, or a model's SHA-256.
        name: of a device or a model; empty for others.
        sweep_id: the sweep that a run or a job belongs to; None for others.
    """

    kind: Kind
    id: str
    name: str = ""
    sweep_id: str | None = None
