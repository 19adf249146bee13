"""The file that tuning writes: what was found fastest, for which processor, kernels, shape and number of threads."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from powerlab.boards.processor import clock_limits_khz, cpu_model
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.program.choice import Choice
from powerlab.engine.target.tiers import Tier, native_engine_file
from powerlab.engine.tuning.document import keep_document, read_document
from powerlab.state_dir import state_dir
from powerlab.sysroot import Sysroot

VERSION = 1
FILE_NAME = "engine-tuning.json"


class Place(Struct, frozen=True, kw_only=True):
    """What measured choices hold for.

    Attributes:
        processor: the processor's own name.
        clock_limits_khz: the highest clock of each cluster of cores, which a power mode sets; empty where unknown.
        tier: the kernels' instruction set.
        kernels: a digest of the compiled kernels.
    """

    processor: str
    clock_limits_khz: tuple[int, ...]
    tier: str
    kernels: str


class Tuned(Struct, frozen=True, kw_only=True):
    """What was found for one shape.

    Attributes:
        shape: the convolution.
        algorithm: the same for any number of threads, so that results are: the first tuning of a shape decides.
        cuts: number of threads -> the choice.
    """

    shape: ConvShape
    algorithm: str
    cuts: dict[int, Choice]


class Tunings(Struct, frozen=True, kw_only=True):
    """All that was found in one place."""

    place: Place
    shapes: tuple[Tuned, ...] = ()

    def by_shape(self) -> dict[ConvShape, Tuned]:
        """Return what was found by shape."""
        return {tuned.shape: tuned for tuned in self.shapes}


class _File(Struct, frozen=True, kw_only=True):
    version: int = VERSION
    places: tuple[Tunings, ...] = field(default_factory=tuple)


def this_place(tier: Tier, sysroot: Sysroot | None = None) -> Place:
    """Return where this process runs."""
    root = sysroot or Sysroot()
    return Place(
        processor=cpu_model(root), clock_limits_khz=clock_limits_khz(root), tier=tier.name, kernels=_kernels_digest()
    )


@cache
def _kernels_digest() -> str:
    return hashlib.blake2b(native_engine_file().read_bytes(), digest_size=8).hexdigest()


def tuning_file() -> Path:
    """Return where measured choices are kept."""
    return state_dir() / FILE_NAME


def has_tunings() -> bool:
    """Tell whether anything was ever tuned here."""
    return tuning_file().exists()


def read_tunings(place: Place, path: Path | None = None) -> Tunings:
    """Return what was found in ``place``; nothing where there is no file.

    Raises:
        PowerlabError: the file is damaged or another version's, and now lies aside; or it cannot be read.
    """
    found = {tunings.place: tunings for tunings in read_document(path or tuning_file(), _File()).places}
    return found.get(place, Tunings(place=place))


def keep_tunings(tunings: Tunings, path: Path | None = None) -> None:
    """Write what was found in one place, beside what the file holds of others: the whole of it or nothing.

    Raises:
        PowerlabError: the file cannot be written, or was damaged and now lies aside.
    """
    to = path or tuning_file()
    others = tuple(other for other in read_document(to, _File()).places if other.place != tunings.place)
    keep_document(to, _File(places=(*others, tunings)))


def with_tuned(tunings: Tunings, tuned: Tuned) -> Tunings:
    """Return the tunings with one shape's added: cuts for other numbers of threads stay, if the algorithm did."""
    known = tunings.by_shape()
    before = known.get(tuned.shape)
    cuts: Mapping[int, Choice] = before.cuts if before and before.algorithm == tuned.algorithm else {}
    known[tuned.shape] = replace(tuned, cuts={**cuts, **tuned.cuts})
    return replace(tunings, shapes=tuple(known.values()))
