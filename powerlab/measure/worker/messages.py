"""Messages between a sweep and its worker process: frames of a 4-byte length and a msgpack message."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from powerlab.domain.place import Place
from powerlab.domain.workload import Workload
from powerlab.measure.layers.messages import LayerReply, LayerRequest

MAX_FRAME_BYTES = 1 << 30
"""A longer frame is garbage: it would hold the times of 67 million queries."""
LENGTH = struct.Struct("<I")


PackedArrays = dict[str, tuple[tuple[int, ...], bytes]]
"""By name, the shape and the little-endian float32 of an array."""


class Load(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """To the worker: load this model and say when it is ready; ``place`` is its own among those that train together."""

    backend_module: str
    workload: Workload
    threads: int
    sysroot: str
    seed: int
    spin_us: int | None = None
    place: Place | None = None


class Follow(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """To the worker: make a step whenever the first worker of the ring begins one, until that ends."""


class WarmUp(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """To the worker: run untimed inferences, at least one, for this long."""

    duration_s: float


class Measure(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """To the worker: run for ``margin_s`` under load, then the timed window, then ``margin_s`` more.

    ``min_inferences`` counts queries. At ``queries_per_s`` they arrive as a Poisson process made from ``arrival_seed``;
    at 0 the next one comes when the last one is answered.
    """

    duration_s: float
    min_inferences: int
    margin_s: float
    queries_per_s: float = 0.0
    arrival_seed: tuple[int, ...] = ()


class Show(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """To the worker: run one inference and show its outputs.

    The inputs are those that were loaded, that ``seed`` makes, or that are ``given``; the only input of a model may be
    given under any name.
    """

    seed: int | None = None
    given: PackedArrays | None = None


Request = Load | Follow | WarmUp | Measure | Show | LayerRequest


class Ready(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """From the worker: loaded, or warmed up.

    ``inference_s`` is the mean time of the queries just answered; ``processor_name`` what the engine calls the graphics
    processor that it loaded the model onto.
    """

    inference_s: float = 0.0
    processor_name: str = ""


QueryParts = dict[str, bytes]
"""By part, in the order in which they follow each other: int64 little-endian ns that it took in each timed query."""


class Timed(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """From the worker: int64 little-endian CLOCK_MONOTONIC ns of every timed query's start and end, and its parts."""

    start_ns: bytes
    end_ns: bytes
    parts: QueryParts = {}


class Shown(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """From the worker: every slice's outputs."""

    outputs: list[PackedArrays]


class Refused(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """From the worker: the user can fix this; ``sentence`` says how. ``memory`` is what it lacks."""

    sentence: str
    memory: bool = False


class Broken(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """From the worker: the engine raised something else."""

    detail: str


Reply = Ready | Timed | Shown | Refused | Broken | LayerReply


def packed(arrays: Mapping[str, NDArray[Any]]) -> PackedArrays:
    """Return arrays as a message holds them."""
    return {name: (value.shape, value.astype("<f4").tobytes()) for name, value in arrays.items()}


def unpacked(arrays: PackedArrays) -> dict[str, NDArray[np.float32]]:
    """Return the arrays that a message holds.

    Raises:
        ValueError: one is cut off.
    """
    return {name: np.frombuffer(data, "<f4").reshape(shape) for name, (shape, data) in arrays.items()}


_encoder = msgspec.msgpack.Encoder()
_request_decoder: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_reply_decoder: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)


def encode(message: Request | Reply) -> bytes:
    """Return the frame of a message."""
    payload = _encoder.encode(message)
    return LENGTH.pack(len(payload)) + payload


def decode_reply(payload: bytes) -> Reply:
    """Return the reply in a frame's payload; raises msgspec.MsgspecError for garbage."""
    return _reply_decoder.decode(payload)


def read_request(stream: BinaryIO) -> Request | None:
    """Wait for the next request; None at the end of the stream."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    return _request_decoder.decode(stream.read(*LENGTH.unpack(head)))
