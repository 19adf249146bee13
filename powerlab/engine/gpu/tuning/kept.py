"""The file of what was found fastest, for which GPU, driver, kernels, shape and precision."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.gpu.choice.candidates import candidates
from powerlab.engine.gpu.choice.method import Chooser, Method, Numbers
from powerlab.engine.gpu.choice.rule import by_rule
from powerlab.engine.gpu.device import chosen, devices
from powerlab.engine.gpu.kernels import FOLDER
from powerlab.engine.gpu.target import Target
from powerlab.engine.tuning.document import keep_document, read_document
from powerlab.state_dir import state_dir

VERSION = 3
FILE_NAME = "gpu-tuning.json"


class Place(Struct, frozen=True, kw_only=True):
    """What measured choices hold for.

    Attributes:
        gpu: its own name.
        driver: its version, in Vulkan's packing and in words.
        kernels: a digest of the compiled shaders.
    """

    gpu: str
    driver: str
    kernels: str


class Tuned(Struct, frozen=True, kw_only=True):
    """What was found for one convolution of such numbers."""

    shape: ConvShape
    numbers: Numbers
    method: Method


class Tunings(Struct, frozen=True, kw_only=True):
    """All that was found in one place."""

    place: Place
    shapes: tuple[Tuned, ...] = ()

    def added(self, tuned: Tuned) -> Tunings:
        """Return these with one more, which replaces what was found of its shape before."""
        others = (one for one in self.shapes if (one.shape, one.numbers) != (tuned.shape, tuned.numbers))
        return replace(self, shapes=(*others, tuned))


class _File(Struct, frozen=True, kw_only=True):
    version: int = VERSION
    places: tuple[Tunings, ...] = ()


def this_place() -> Place:
    """Return the GPU that is used, its driver and the kernels.

    Raises:
        PowerlabError: there is none.
    """
    info = devices()[chosen()]
    driver = f"{info.driver_version} {info.driver}".strip()
    return Place(gpu=info.name, driver=driver, kernels=_kernels_digest())


@cache
def _kernels_digest() -> str:
    digest = hashlib.blake2b(digest_size=8)
    for file in sorted(FOLDER.glob("*.spv")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def tuning_file() -> Path:
    """Return where measured choices are kept."""
    return state_dir() / FILE_NAME


def read_tunings(place: Place) -> Tunings:
    """Return what was found in a place; nothing where there is no file.

    Raises:
        PowerlabError: the file is damaged or another version's, and now lies aside; or it cannot be read.
    """
    return next((one for one in _places() if one.place == place), Tunings(place=place))


def keep_tunings(tunings: Tunings) -> None:
    """Write what was found in one place, beside what the file holds of others.

    Raises:
        PowerlabError: the file cannot be written, or was damaged and now lies aside.
    """
    others = (one for one in _places() if one.place != tunings.place)
    keep_document(tuning_file(), _File(places=(*others, tunings)))


def _places() -> Iterable[Tunings]:
    return read_document(tuning_file(), _File()).places


def by_tuning(target: Target) -> Chooser:
    """Return what takes the method found fastest here, and leaves shapes that were not tuned to the rule.

    Raises:
        PowerlabError: the file is damaged, or cannot be read.
    """
    expected = by_rule(target)
    if not tuning_file().exists():
        return expected
    known = {(one.shape, one.numbers): one.method for one in read_tunings(this_place()).shapes}

    def choose(shape: ConvShape, numbers: Numbers) -> Method:
        method = known.get((shape, numbers))
        usable = method is not None and method in candidates(shape, target, numbers)
        return method if method is not None and usable else expected(shape, numbers)

    return choose
