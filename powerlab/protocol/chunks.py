"""Power traces as compressed chunks, as sent and as stored.

What their samples become is a codec's business (:mod:`powerlab.protocol.codecs`); a chunk says which one it was, and
beside them what a reader needs to skip it unread.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Trace
from powerlab.protocol.codecs import decode, encode
from powerlab.protocol.messages import TraceChunk

MAX_SAMPLES = 65_536
"""Samples in one chunk at most: 1 MiB before compression."""
MAX_VALUE = 1e15
"""In W or J; beyond it sums lose their meaning."""


class Summary(Protocol):
    """What is said of a chunk's samples, wherever they are."""

    @property
    def sample_count(self) -> int: ...  # noqa: D102
    @property
    def t_first_ns(self) -> int: ...  # noqa: D102
    @property
    def t_last_ns(self) -> int: ...  # noqa: D102
    @property
    def value_min(self) -> float: ...  # noqa: D102
    @property
    def value_max(self) -> float: ...  # noqa: D102
    @property
    def value_sum(self) -> float: ...  # noqa: D102


def split(trace: Trace, max_samples: int = MAX_SAMPLES) -> Iterator[TraceChunk]:
    """Cut a trace into chunks; a trace without samples gives none.

    Raises:
        PowerlabError: the times do not increase or a value is not finite.
    """
    if trace.time_ns.shape != trace.value.shape or np.any(np.diff(trace.time_ns) <= 0):
        raise PowerlabError(f"the times of the trace of {trace.rail.key} do not increase; the trace cannot be stored.")
    if not _plausible(trace.value):
        raise PowerlabError(
            f"the trace of {trace.rail.key} holds values that are not finite or too large; it cannot be stored."
        )
    for position, start in enumerate(range(0, len(trace.time_ns), max_samples)):
        part = slice(start, start + max_samples)
        yield _encode(trace, trace.time_ns[part], trace.value[part], position)


def _plausible(value: NDArray[np.float64]) -> bool:
    return bool(np.all(np.abs(value) <= MAX_VALUE))  # false for NaN too


def _encode(trace: Trace, time_ns: NDArray[np.int64], value: NDArray[np.float64], position: int) -> TraceChunk:
    codec, payload = encode(time_ns, value, trace.rail.resolution)
    return TraceChunk(
        rail=trace.rail,
        position=position,
        read_cost_ns=int(trace.read_cost_ns),
        t_first_ns=int(time_ns[0]),
        t_last_ns=int(time_ns[-1]),
        sample_count=len(time_ns),
        value_min=float(value.min()),
        value_max=float(value.max()),
        value_sum=float(value.sum()),
        codec=codec,
        sha256=hashlib.sha256(payload).hexdigest(),
        payload_base64=base64.b64encode(payload).decode("ascii"),
        part=trace.part,
    )


def payload_of(chunk: TraceChunk) -> bytes:
    """Return a chunk's payload; raises PowerlabError where it is not what its SHA-256 says."""
    try:
        payload = base64.b64decode(chunk.payload_base64, validate=True)
    except (binascii.Error, ValueError) as error:
        raise PowerlabError(f"the chunk's payload is not base64 ({error}); send it again.") from error
    check_digest(payload, chunk.sha256)
    return payload


def check_digest(payload: bytes, sha256: str) -> None:
    """Raise PowerlabError where a payload is not what its SHA-256 says."""
    if hashlib.sha256(payload).hexdigest() != sha256:
        raise PowerlabError("the chunk's payload does not match its sha256; send it again.")


def check(chunk: TraceChunk) -> bytes:
    """Return the payload of a chunk whose summary agrees with its samples; raises PowerlabError otherwise."""
    payload = payload_of(chunk)
    samples_of(chunk, payload, chunk.codec)
    return payload


def samples_of(said: Summary, payload: bytes, codec: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return a payload's times in ns and values; raises PowerlabError where they are not what is said of them."""
    if not 1 <= said.sample_count <= MAX_SAMPLES:
        raise PowerlabError(f"a chunk holds 1 to {MAX_SAMPLES} samples, this one claims {said.sample_count}.")
    time_ns, value = decode(payload, codec, said.sample_count)
    check_summary(said, time_ns, value)
    return time_ns, value


def check_summary(said: Summary, time_ns: NDArray[np.int64], value: NDArray[np.float64]) -> None:
    """Raise PowerlabError where samples, at least one, are impossible or not what is said of them."""
    if np.any(np.diff(time_ns) <= 0) or not _plausible(value):
        raise PowerlabError("the chunk's times do not increase or its values are impossible; it cannot be stored.")
    extremes = (said.t_first_ns, said.t_last_ns, said.value_min, said.value_max)
    if extremes != (int(time_ns[0]), int(time_ns[-1]), float(value.min()), float(value.max())):
        raise PowerlabError("the chunk's times or extremes do not match its samples; send it again.")
    if not math.isclose(said.value_sum, value.sum(), rel_tol=1e-9, abs_tol=1e-9):
        raise PowerlabError("the chunk's sum does not match its samples; send it again.")
