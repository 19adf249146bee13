"""GPUs of this machine, and the one that is used."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
from functools import cache
from pathlib import Path
from typing import Any

import platformdirs

from powerlab.atomic_file import write_parts
from powerlab.domain.errors import PowerlabError
from powerlab.engine.gpu.target import PROCESSOR, Target, target_of

LIBRARY = "libvulkan.so.1"
NUMBER = "POWERLAB_GPU"
"""Environment variable: which of several GPUs to use, by its number from 0 on."""

MOST_QUEUES = 8
"""Of one process; more do not compute at the same time on any GPU known."""

MANIFESTS = tuple(Path(folder) / "vulkan" / "icd.d" for folder in ("/etc", "/usr/local/share", "/usr/share"))
"""Where Vulkan's loader looks for what drivers say of themselves."""

_NO_DRIVER = "no Vulkan driver is here"
"""How the native core's sentence begins where the loader finds none that it can load."""

_NVIDIA_FAILED = (
    "NVIDIA's Vulkan driver is installed, but does not load; it needs GLVND and EGL, which a server without a display "
    "may lack (Debian and Ubuntu: libegl1 libgl1)."
)

_KINDS = ("discrete", "integrated", "virtual", "other", PROCESSOR)
"""In the order in which a GPU is looked for."""


def native() -> Any:
    """Return the native core's module for GPUs."""
    return importlib.import_module("powerlab.native._native").gpu


@cache
def library() -> Any:
    """Return Vulkan's loader, opened.

    Raises:
        PowerlabError: there is none, or no driver; says what to install.
    """
    try:
        return native().Library(LIBRARY)
    except RuntimeError as error:
        known = str(error).startswith(_NO_DRIVER) and any(one for folder in MANIFESTS for one in folder.glob("nvidia*"))
        why = _NVIDIA_FAILED if known else error
        raise PowerlabError(f"The device gpu cannot be used: {why}") from None


def devices() -> list[Any]:
    """Return what is known of every GPU: native ``DeviceInfo``."""
    return list(library().devices())


def chosen() -> int:
    """Return the number of the GPU to use: the one asked for, or the first of the best kind.

    Raises:
        PowerlabError: there is none, or not the one asked for.
    """
    found = devices()
    asked = os.environ.get(NUMBER, "")
    if asked:
        if not asked.isdigit() or int(asked) >= len(found):
            raise PowerlabError(f"{NUMBER} is {asked!r}; it must be a number below {len(found)}, the GPUs here.")
        return int(asked)
    if not found:
        raise PowerlabError("The device gpu cannot be used: Vulkan's loader knows no GPU here; install its driver.")
    return min(range(len(found)), key=lambda index: _KINDS.index(found[index].kind))


def chosen_info() -> Any:
    """Return what is known of the chosen GPU.

    Raises:
        PowerlabError: there is none, or kernels do not run on it.
    """
    info = devices()[chosen()]
    if info.subgroup_lanes == 0:
        raise PowerlabError(f"the driver of {info.name} lets lanes share nothing; install a newer one.")
    return info


def chosen_name() -> str:
    """Return the name of the chosen GPU, and its driver's where that tells one."""
    used = devices()[chosen()]
    return ", ".join(filter(None, (used.name, used.driver)))


def queues_here() -> int:
    """Return how many queues of the chosen GPU a process may compute in at the same time."""
    return min(int(devices()[chosen()].queues), MOST_QUEUES)


def check_queues(queues: int, slices: int) -> None:
    """Raise PowerlabError where the chosen GPU cannot spread so many slices over so many queues."""
    if isinstance(queues, bool) or not isinstance(queues, int) or queues < 1:
        raise PowerlabError(f"queues must be an integer of at least 1, not {queues!r}.")
    if queues == 1:
        return
    if queues > slices:
        parts = "1 slice" if slices == 1 else f"{slices} slices"
        raise PowerlabError(
            f"a batch of {parts} cannot be spread over {queues} queues; ask for more slices or fewer queues."
        )
    there = queues_here()
    if queues > there:
        has, remedy = (
            ("one queue", "leave the queues out") if there == 1 else (f"{there} queues", f"ask for {there} at most")
        )
        raise PowerlabError(
            f"{devices()[chosen()].name} has {has}, so slices cannot be spread over {queues}; {remedy}."
        )


def this_target() -> Target:
    """Return what the chosen GPU is able to do."""
    return target_of(devices()[chosen()])


@cache
def opened(*, host_constants: bool = True) -> Any:
    """Return the native ``Device`` of the chosen GPU; models of one process share it and its pipelines."""
    index = chosen()
    kept = b""
    with contextlib.suppress(OSError):
        kept = _cache_file(devices()[index]).read_bytes()
    try:
        return native().Device(library(), index, kept, host_constants)
    except (RuntimeError, MemoryError) as error:
        raise PowerlabError(f"The device gpu cannot be used: {error}") from None


def keep_pipelines(device: Any) -> None:
    """Write the device's compiled pipelines where the next process finds them, unless they came from there.

    A disk that is full, or a folder that may not be written, costs nothing but compiling them again.
    """
    kept = device.pipeline_cache()
    file = _cache_file(devices()[chosen()])
    with contextlib.suppress(OSError):
        if not file.exists() or file.stat().st_size < len(kept):
            write_parts(file, (kept,), durable=False)


atexit.register(library.cache_clear)
atexit.register(opened.cache_clear)  # runs first: a device goes before the loader


def _cache_file(info: Any) -> Path:
    """Return the file of a driver's pipelines; the driver itself checks that they are its own."""
    name = f"{info.vendor:04x}-{info.device:04x}-{info.driver_version:08x}-{info.cache_id}.pipelines"
    return Path(platformdirs.user_cache_dir("powerlab")) / "gpu" / name
