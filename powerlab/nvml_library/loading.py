"""Finds and loads the library of a system root: the host's own, or one that lies in a tree."""

from __future__ import annotations

import ctypes
import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from powerlab.domain.power import Availability
from powerlab.nvml_library.library import Library, NvmlError
from powerlab.nvml_library.problems import NvmlUnavailableError, no_package, unavailable
from powerlab.sysroot import Sysroot

LIBRARY_PATHS = (
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib64/libnvidia-ml.so.1",
    "/usr/lib/libnvidia-ml.so.1",
)
"""Where distributions put it; asked only of a tree, the host's own is found by the loader."""


def load(sysroot: Sysroot) -> Library:
    """Return the library of a system root, not started yet.

    Raises:
        NvmlUnavailableError: there is none.
    """
    return Library(_host_module(sysroot) if sysroot.base == Path("/") else _tree_module(sysroot))


@contextmanager
def session(sysroot: Sysroot) -> Iterator[Library]:
    """Yield the library of a system root while it is started.

    Raises:
        NvmlUnavailableError: there is none, or it does not start.
    """
    library = load(sysroot)
    try:
        library.start()
    except NvmlError as error:
        raise unavailable(error, sysroot) from error
    try:
        yield library
    finally:
        library.stop()


def _host_module(sysroot: Sysroot) -> Any:
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        raise no_package(sysroot) from None


def _tree_module(sysroot: Sysroot) -> Any:
    found = [sysroot.path(path) for path in LIBRARY_PATHS if sysroot.path(path).is_file()]
    if not found:
        raise NvmlUnavailableError(Availability.ABSENT, "no NVIDIA library (libnvidia-ml.so.1) in this file tree")
    try:
        return _copy_for(found[0].resolve())
    except ImportError:
        raise no_package(sysroot) from None
    except OSError as error:
        raise NvmlUnavailableError(
            Availability.BROKEN, f"the NVIDIA library of this system root cannot be loaded: {error}"
        ) from None


@lru_cache(maxsize=8)
def _copy_for(library: Path) -> ModuleType:
    """Return a fresh copy of the module ``pynvml`` that speaks to a library of our choice.

    The module loads ``libnvidia-ml.so.1`` only where its variable ``nvmlLib`` is not set yet.

    Raises:
        ImportError: the package is not installed.
        OSError: the library cannot be loaded.
    """
    found = importlib.machinery.PathFinder.find_spec("pynvml")
    if found is None or found.origin is None:
        raise ImportError("pynvml")
    name = f"pynvml of {library}"
    spec = importlib.util.spec_from_file_location(name, found.origin)
    if spec is None or spec.loader is None:
        raise ImportError("pynvml")
    module = importlib.util.module_from_spec(spec)
    # While it is loaded the module looks itself up by its name to make its exceptions.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    vars(module)["nvmlLib"] = ctypes.CDLL(str(library))
    return module
