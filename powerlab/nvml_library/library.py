"""One loaded library: starting it, asking it, and its errors."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

NOT_SUPPORTED, NO_PERMISSION, DRIVER_NOT_LOADED = 3, 4, 9
LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND, MISMATCH, UNKNOWN = 12, 13, 18, 999
"""Return codes of NVML (nvml.h, nvmlReturn_t)."""


class NvmlError(OSError):
    """One query or change failed, with NVML's own words."""

    def __init__(self, words: str, code: int) -> None:
        super().__init__(f"NVML: {words}")
        self.words, self.code = words, code

    @property
    def unsupported(self) -> bool:
        """Whether this processor, this driver or this version of nvidia-ml-py does not know the call."""
        return self.code in {NOT_SUPPORTED, FUNCTION_NOT_FOUND}

    @property
    def denied(self) -> bool:
        """Whether this user may not do that."""
        return self.code == NO_PERMISSION


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
            raise NvmlError(f"this version of nvidia-ml-py has no {function}", FUNCTION_NOT_FOUND)
        try:
            return call(*arguments)
        except self._module.NVMLError as error:
            raise NvmlError(str(error), int(error.value)) from error
        except UnicodeDecodeError as error:
            raise NvmlError(f"{function} gives a text that is none", UNKNOWN) from error

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
