"""How the samples of a chunk become bytes: each way has a name, which travels with the chunk and is stored with it.

What was ever written can be read for good; what is written takes the way that is shorter for it.
"""

from __future__ import annotations

import struct
import zlib
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.codecs import delta_zlib, steps_rice

Samples = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Times in ns and values, both of shape (n,)."""


class _Codec(Protocol):
    """A module of this package."""

    def encode(self, time_ns: NDArray[np.int64], value: NDArray[np.float64], resolution: float, /) -> bytes: ...

    def most_bytes(self, sample_count: int, /) -> int:
        """Return how many bytes may come out of zlib."""
        ...

    def decode(self, data: bytes, sample_count: int, /) -> Samples:
        """Return what came out of zlib as samples; raises ValueError or struct.error where it is something else."""
        ...


_CODECS: dict[str, _Codec] = {"delta-zlib-1": delta_zlib, "steps-rice-1": steps_rice}


def encode(time_ns: NDArray[np.int64], value: NDArray[np.float64], resolution: float) -> tuple[str, bytes]:
    """Return the name of a codec and the bytes it makes of samples, at least one; they come back bit for bit.

    Args:
        time_ns: times in ns, shape (n,).
        value: values, shape (n,).
        resolution: the step of one reading where it is known; only a hint.
    """
    ways = {name: codec.encode(time_ns, value, resolution) for name, codec in _CODECS.items()}
    name = min(ways, key=lambda one: len(ways[one]))
    return name, ways[name]


def decode(payload: bytes, codec: str, sample_count: int) -> Samples:
    """Return times in ns and values, each of shape (sample_count,).

    Raises:
        PowerlabError: the codec is unknown, or the payload holds something else.
    """
    if codec not in _CODECS:
        known = ", ".join(_CODECS)
        raise PowerlabError(f"the trace codec {codec!r} is unknown here (known: {known}); update powerlab.")
    try:
        # The limit keeps a small hostile payload from growing into gigabytes.
        most = _CODECS[codec].most_bytes(sample_count)
        data = zlib.decompressobj().decompress(payload, most + 1)
        if len(data) > most:
            raise ValueError("too much")
        return _CODECS[codec].decode(data, sample_count)
    except (zlib.error, struct.error) as error:
        raise PowerlabError(f"the trace chunk is damaged ({error}); upload it again.") from error
    except ValueError as error:
        raise PowerlabError(
            f"the trace chunk does not hold the {sample_count} samples it claims; upload it again."
        ) from error
