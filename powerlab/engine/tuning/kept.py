"""The file that tuning writes: what was found fastest, for which processor, kernels, shape and number of threads."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import msgspec

from powerlab.atomic_file import write_whole
from powerlab.boards.processor import clock_limits_khz, cpu_model
from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.program.choice import Choice
from powerlab.engine.target.tiers import Tier, native_engine_file
from powerlab.state_dir import state_dir
from powerlab.sysroot import Sysroot

VERSION = 1
FILE_NAME = "engine-tuning.json"
_ASIDE = ".damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """What was found for one shape.

    Attributes:
        shape: the convolution.
        algorithm: the same for any number of threads, so that results are: the first tuning of a shape decides.
        cuts: number of threads -> the choice.
    """

    shape: ConvShape
    algorithm: str
    cuts: dict[int, Choice]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunings:
    """All that was found in one place."""

    place: Place
    shapes: tuple[Tuned, ...] = ()

    def by_shape(self) -> dict[ConvShape, Tuned]:
        """Return what was found by shape."""
        return {tuned.shape: tuned for tuned in self.shapes}


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
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
    found = {tunings.place: tunings for tunings in _read(path or tuning_file()).places}
    return found.get(place, Tunings(place=place))


def keep_tunings(tunings: Tunings, path: Path | None = None) -> None:
    """Write what was found in one place, beside what the file holds of others: the whole of it or nothing.

    Raises:
        PowerlabError: the file cannot be written, or was damaged and now lies aside.
    """
    to = path or tuning_file()
    others = tuple(other for other in _read(to).places if other.place != tunings.place)
    content = msgspec.json.format(msgspec.json.encode(_File(places=(*others, tunings))), indent=1) + b"\n"
    try:
        write_whole(to, content)
    except OSError as error:
        raise PowerlabError(
            f"what was tuned cannot be written to {to.parent} ({error.strerror}); free some space there, or name a "
            "writable "
            "place in POWERLAB_STATE_DIR."
        ) from None


def with_tuned(tunings: Tunings, tuned: Tuned) -> Tunings:
    """Return the tunings with one shape's added: cuts for other numbers of threads stay, if the algorithm did."""
    known = tunings.by_shape()
    before = known.get(tuned.shape)
    cuts: Mapping[int, Choice] = before.cuts if before and before.algorithm == tuned.algorithm else {}
    known[tuned.shape] = replace(tuned, cuts={**cuts, **tuned.cuts})
    return replace(tunings, shapes=tuple(known.values()))


def _read(path: Path) -> _File:
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_File)
    except FileNotFoundError:
        return _File()
    except OSError as error:
        raise PowerlabError(
            f"the engine's tuning {path} cannot be read ({error.strerror}); check its permissions."
        ) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _set_aside(path) from None
    if found.version != VERSION:
        raise _set_aside(path)
    return found


def _set_aside(path: Path) -> PowerlabError:
    """Move a file that cannot be used out of the way, and return what to say about it."""
    aside = path.with_name(path.name + _ASIDE)
    try:
        os.replace(path, aside)
    except OSError as error:
        return PowerlabError(
            f"the engine's tuning {path} is damaged or another version's, and cannot be moved ({error.strerror}); "
            "remove it."
        )
    return PowerlabError(
        f"the engine's tuning {path} was damaged or another version's and now lies at {aside.name}; try again, or make "
        "a new one with `powerlab engine tune`."
    )
