"""What a prepared model depends on, as one key: what is not in it must not decide what a model becomes."""

from __future__ import annotations

import hashlib
import mmap
import operator
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import msgspec
import numpy as np

import powerlab
from powerlab.engine.frontend.load import in_zoo
from powerlab.engine.prepared.contents import file_digest
from powerlab.engine.target.machine import Machine
from powerlab.engine.target.tiers import available_tiers, native_engine_file
from powerlab.engine.tuning.kept import Tunings

Asked = tuple[Mapping[str, tuple[int, ...]], int | None, int]
"""Shapes of inputs by name, batch size, and slices, as :class:`powerlab.engine.Session` takes them."""

_EXTERNAL = b"location"
"""A key that a file whose weights lie in other files cannot do without."""


def model_digest(model: str | Path, folder: Path, threads: int) -> str | None:
    """Return what tells a model from all others, but for weights in other files; None where there is no such file.

    Args:
        model: its name in the zoo, whose weights its code makes, or its file.
        folder: where digests are remembered.
        threads: that read the file.
    """
    if in_zoo(model):
        return str(model)
    path = Path(model)
    memory = folder / f"{hashlib.sha256(os.fsencode(path.absolute())).hexdigest()}.digest"
    try:
        return file_digest(path, threads, memory=memory).hex() if path.is_file() else None
    except OSError:
        return None  # reading the model says what is wrong


def prepared_key(model: str, asked: Asked, machine: Machine, tunings: Tunings | None) -> str:
    """Return the key of a model as it is prepared for a machine.

    Args:
        model: its digest.
        asked: shapes of inputs, batch size and slices.
        machine: kernels, threads of a slice, and caches.
        tunings: what was tuned for this machine.
    """
    shapes, batch_size, slices = asked
    facts = (
        model,
        sorted((name, tuple(map(operator.index, shape))) for name, shape in shapes.items()),
        batch_size,
        slices,
        machine,
        tunings,
        available_tiers()[0].name,  # weights are packed by the best kernels, whichever compute
        engine_fingerprint(),
    )
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()


@cache
def engine_fingerprint() -> str:
    """Return what changes whenever the engine's code does: versions, and size and time of every source file."""
    files = sorted(_sources(Path(__file__).parents[1]))
    kernels = native_engine_file().stat()
    versions = (powerlab.__version__, np.__version__)
    return hashlib.sha256(repr((versions, kernels.st_size, kernels.st_mtime_ns, files)).encode()).hexdigest()


def _sources(folder: Path) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _sources(Path(entry.path))
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns


def is_whole(model: str | Path) -> bool:
    """Tell whether all weights of a model are in its file; False where that is not certain."""
    if in_zoo(model):
        return True
    try:
        with Path(model).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return data.find(_EXTERNAL) < 0
    except (OSError, ValueError):  # gone, or empty
        return False
