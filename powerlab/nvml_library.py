"""NVIDIA's management library (NVML) of a system root: the host's own, or the one that lies in a tree.

    with session(sysroot) as library:            # or NvmlUnavailableError: what is missing, and how to mend it
        library.ask("nvmlDeviceGetPowerUsage", library.device(0))

The power source, the knob and the watch share it. Calls go through the package ``nvidia-ml-py``. Its module ``pynvml``
keeps one library for the whole process, so each tree has a copy of that module of its own.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.machinery
import importlib.util
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from powerlab.domain.power import Availability
from powerlab.sysroot import Sysroot

LIBRARY_PATHS = (
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib64/libnvidia-ml.so.1",
    "/usr/lib/libnvidia-ml.so.1",
)
"""Where distributions put it; asked only of a tree, the host's own is found by the loader."""

_NOT_SUPPORTED, _NO_PERMISSION, _DRIVER_NOT_LOADED = 3, 4, 9
_LIBRARY_NOT_FOUND, _FUNCTION_NOT_FOUND, _MISMATCH = 12, 13, 18
"""Return codes of NVML (nvml.h, nvmlReturn_t)."""

_INSTALL = "install it: `pip install 'powerlab[nvidia]'`"
_PERMISSION_REMEDY = (
    "run powerlab as root, or let this user open the driver's devices: `ls -l /dev/nvidia*` shows their group, and"
    " `sudo usermod -aG GROUP $USER` adds the user to it; a container needs `--gpus all`"
)


class NvmlUnavailableError(Exception):
    """NVML cannot be used: in which way, in one sentence, and what to do about it."""

    def __init__(self, availability: Availability, detail: str, remedy: str = "") -> None:
        super().__init__(detail)
        self.availability, self.detail, self.remedy = availability, detail, remedy


class NvmlError(OSError):
    """One query or change failed, with NVML's own words."""

    def __init__(self, words: str, code: int) -> None:
        super().__init__(f"NVML: {words}")
        self.words, self.code = words, code

    @property
    def unsupported(self) -> bool:
        """Whether this processor, this driver or this version of nvidia-ml-py does not know the call."""
        return self.code in {_NOT_SUPPORTED, _FUNCTION_NOT_FOUND}

    @property
    def denied(self) -> bool:
        """Whether this user may not do that."""
        return self.code == _NO_PERMISSION


class Library:
    """One loaded library. It may be shared by threads."""

    def __init__(self, module: Any) -> None:
        """Wrap a module that behaves like ``pynvml``."""
        self._module = module
        self._lock = threading.Lock()
        self._users = 0
        self._devices: dict[int, Any] = {}

    def start(self) -> None:
        """Start NVML, where it is not; each call wants its :meth:`stop`.

        NVML is not kept started for longer than needed: it would hold the driver, and on some machines keep the
        processor awake.

        Raises:
            NvmlError: it does not start.
        """
        with self._lock:
            if self._users == 0:
                self.ask("nvmlInit")
                self._devices.clear()
            self._users += 1

    def stop(self) -> None:
        """Undo one :meth:`start`."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                # A processor that was lost meanwhile may fail this; what was read until then is none the worse.
                with suppress(NvmlError):
                    self.ask("nvmlShutdown")

    @contextmanager
    def started(self) -> Iterator[None]:
        """Keep NVML started; inside of another such context this costs next to nothing.

        Raises:
            NvmlError: it does not start.
        """
        self.start()
        try:
            yield
        finally:
            self.stop()

    def ask(self, function: str, *arguments: Any) -> Any:
        """Call a function of ``pynvml``.

        Raises:
            NvmlError: it fails, or this version of the package has no such function.
        """
        call = getattr(self._module, function, None)
        if call is None:
            raise NvmlError(f"this version of nvidia-ml-py has no {function}", _FUNCTION_NOT_FOUND)
        try:
            return call(*arguments)
        except self._module.NVMLError as error:
            raise NvmlError(str(error), int(error.value)) from error

    def device(self, index: int) -> Any:
        """Return the handle of a processor; valid while NVML is started.

        Raises:
            NvmlError: there is no such processor, or NVML is not started.
        """
        if index not in self._devices:
            self._devices[index] = self.ask("nvmlDeviceGetHandleByIndex", index)
        return self._devices[index]

    def devices(self) -> range:
        """Return the numbers of all processors, none where NVML has none.

        Raises:
            NvmlError: NVML is not started.
        """
        return range(int(self.ask("nvmlDeviceGetCount")))

    def text(self, function: str, *arguments: Any) -> str:
        """Call a function that returns a text, which older versions of the package give as bytes.

        Raises:
            NvmlError: it fails.
        """
        answer = self.ask(function, *arguments)
        return answer.decode(errors="replace") if isinstance(answer, bytes) else str(answer)


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
        raise unavailable(error) from error
    try:
        yield library
    finally:
        library.stop()


def unavailable(error: NvmlError) -> NvmlUnavailableError:
    """Say what an error of the whole library means, and what to do about it."""
    if error.code == _LIBRARY_NOT_FOUND:
        return NvmlUnavailableError(
            Availability.ABSENT,
            "no NVIDIA driver: the library libnvidia-ml.so.1 is not on this machine",
            "only where it has an NVIDIA graphics processor: install NVIDIA's driver; a container needs `--gpus all`",
        )
    if error.code == _DRIVER_NOT_LOADED:
        return NvmlUnavailableError(
            Availability.BROKEN,
            "NVIDIA's library is installed, but its driver is not loaded",
            "load it with `sudo modprobe nvidia`; `sudo dmesg | grep -i nvidia` says why it may refuse",
        )
    if error.code == _MISMATCH:
        return NvmlUnavailableError(
            Availability.BROKEN,
            "NVIDIA's library and its loaded driver have different versions, as after an update",
            "reboot, so that the new driver is loaded",
        )
    if error.denied:
        return NvmlUnavailableError(Availability.DENIED, "this user may not use NVIDIA's driver", _PERMISSION_REMEDY)
    return NvmlUnavailableError(
        Availability.BROKEN,
        f"NVML fails: {error.words}",
        "`nvidia-smi` shows whether NVIDIA's own tool starts",
    )


def _host_module(sysroot: Sysroot) -> Any:
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        raise _no_package(sysroot) from None


def _tree_module(sysroot: Sysroot) -> Any:
    found = [sysroot.path(path) for path in LIBRARY_PATHS if sysroot.path(path).is_file()]
    if not found:
        raise NvmlUnavailableError(Availability.ABSENT, "this system root has no NVIDIA library (libnvidia-ml.so.1)")
    try:
        return _copy_for(found[0].resolve())
    except ImportError:
        raise _no_package(sysroot) from None
    except OSError as error:
        raise NvmlUnavailableError(
            Availability.BROKEN, f"the NVIDIA library of this system root cannot be loaded: {error}"
        ) from None


def _no_package(sysroot: Sysroot) -> NvmlUnavailableError:
    driver = sysroot.path("/proc/driver/nvidia/version").exists() or any(
        sysroot.path(path).is_file() for path in LIBRARY_PATHS
    )
    if driver:
        detail = "there is an NVIDIA driver, but the Python package nvidia-ml-py is not installed"
        return NvmlUnavailableError(Availability.BROKEN, detail, _INSTALL)
    detail = "the Python package nvidia-ml-py is not installed"
    return NvmlUnavailableError(
        Availability.ABSENT, detail, f"only for a machine with an NVIDIA graphics processor, {_INSTALL}"
    )


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
