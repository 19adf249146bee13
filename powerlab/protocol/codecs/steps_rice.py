"""The codec ``steps-rice-1``: readings are multiples of a step, taken at nearly equal intervals.

Values become integers of a step (:mod:`~powerlab.protocol.codecs.steps`), integers and times what is left of
them after they were predicted (:mod:`~powerlab.protocol.codecs.prediction`), and that becomes Rice's code
(:mod:`~powerlab.protocol.codecs.rice`); zlib shortens what repeats. Before zlib the bytes are: how values follow from
integers (21 bytes with the length of what comes next), the times, the values.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from powerlab.protocol.codecs import prediction
from powerlab.protocol.codecs.steps import Form, Step, find_step, from_whole, to_whole

_HEAD = struct.Struct("<BdqI")
"""The form, the unit, the multiple, and how many bytes the times take; little-endian."""


def encode(time_ns: NDArray[np.int64], value: NDArray[np.float64], resolution: float) -> bytes:
    """Return samples as bytes."""
    step = find_step(value, resolution)
    times = prediction.pack(np.asarray(time_ns, dtype=np.int64))
    head = _HEAD.pack(step.form, step.unit, step.multiple, len(times))
    return zlib.compress(head + times + prediction.pack(to_whole(value, step)), level=6)


def most_bytes(sample_count: int) -> int:
    """Return how long the data may be before compression."""
    return _HEAD.size + 2 * prediction.most_bytes(sample_count)


def decode(data: bytes, sample_count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return samples; raises ValueError or struct.error where the data holds something else."""
    form, unit, multiple, size = _HEAD.unpack_from(data)
    start = _HEAD.size
    time_ns = prediction.unpack(data[start : start + size], sample_count)
    whole = prediction.unpack(data[start + size :], sample_count)
    return time_ns, from_whole(whole, Step(form=Form(form), unit=unit, multiple=multiple))
