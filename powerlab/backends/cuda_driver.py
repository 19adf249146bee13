"""The first card of NVIDIA's driver: its name, memory, and copies, by the driver's own library (CUDA driver API).

Every driver brings ``libcuda.so.1`` along, a Jetson's too, so nothing has to be installed for it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError

LIBRARY = "libcuda.so.1"
_NAME_BYTES = 256

_Handle, _Pointer, _Size, _Number = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int
_PARAMETERS: dict[str, tuple[Any, ...]] = {
    "cuInit": (ctypes.c_uint,),
    "cuDeviceGetCount": (ctypes.POINTER(_Number),),
    "cuDeviceGet": (ctypes.POINTER(_Number), _Number),
    "cuDeviceGetName": (ctypes.c_char_p, _Number, _Number),
    "cuDevicePrimaryCtxRetain": (ctypes.POINTER(_Handle), _Number),
    "cuCtxSetCurrent": (_Handle,),
    "cuStreamCreate": (ctypes.POINTER(_Handle), ctypes.c_uint),
    "cuStreamSynchronize": (_Handle,),
    "cuMemAlloc_v2": (ctypes.POINTER(_Pointer), _Size),
    "cuMemcpyHtoDAsync_v2": (_Pointer, _Handle, _Size, _Handle),
    "cuMemcpyDtoHAsync_v2": (_Handle, _Pointer, _Size, _Handle),
    "cuGetErrorName": (_Number, ctypes.POINTER(ctypes.c_char_p)),
}


def card_name() -> str:
    """Return the driver's name of its first card; empty where there is no driver that tells."""
    try:
        return _Driver().name
    except PowerlabError:
        return ""


class _Driver:
    """The driver's library, and its first card by name."""

    def __init__(self) -> None:
        try:
            library = ctypes.CDLL(LIBRARY)
        except OSError:
            raise PowerlabError(
                f"no driver of NVIDIA's is here ({LIBRARY} cannot be opened); install it, or choose another engine."
            ) from None
        self._functions = {name: _function(library, name, given) for name, given in _PARAMETERS.items()}
        self._call("cuInit", 0)
        count, self._device = _Number(), _Number()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        if count.value < 1:
            raise PowerlabError("NVIDIA's driver finds no card here; choose another engine.")
        self._call("cuDeviceGet", ctypes.byref(self._device), 0)
        name = ctypes.create_string_buffer(_NAME_BYTES)
        self._call("cuDeviceGetName", name, _NAME_BYTES, self._device)
        self.name = name.value.decode(errors="replace")

    def _call(self, name: str, *arguments: Any) -> None:
        code = self._functions[name](*arguments)
        if code != 0:
            word = ctypes.c_char_p()
            self._functions["cuGetErrorName"](code, ctypes.byref(word))
            reason = (word.value or b"").decode(errors="replace") or f"code {code}"
            raise PowerlabError(f"NVIDIA's driver refuses {name}: {reason}; see whether `nvidia-smi` works.")


class CudaCard(_Driver):
    """The first card, with a stream of its own in the context that all libraries of a process share.

    Attributes:
        name: as the driver gives it.
        stream: the stream's handle.

    Raises:
        PowerlabError: there is no driver or no card.
    """

    def __init__(self) -> None:
        super().__init__()
        context, stream = _Handle(), _Handle()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self._context = context
        self.enter()
        self._call("cuStreamCreate", ctypes.byref(stream), 0)
        self.stream = int(stream.value or 0)

    def enter(self) -> None:
        """Let the calling thread use the card: each thread says so itself."""
        self._call("cuCtxSetCurrent", self._context)

    def allocate(self, size_bytes: int) -> int:
        """Return the address of memory on the card, which is kept as long as the process lives."""
        address = _Pointer()
        self._call("cuMemAlloc_v2", ctypes.byref(address), size_bytes)
        return int(address.value)

    def send(self, address: int, array: NDArray[Any]) -> None:
        """Begin to copy a contiguous array to the card."""
        self._call("cuMemcpyHtoDAsync_v2", address, array.ctypes.data, array.nbytes, self.stream)

    def fetch(self, array: NDArray[Any], address: int) -> None:
        """Begin to copy what lies on the card into a contiguous array."""
        self._call("cuMemcpyDtoHAsync_v2", array.ctypes.data, address, array.nbytes, self.stream)

    def wait(self) -> None:
        """Wait until all that was begun is done."""
        self._call("cuStreamSynchronize", self.stream)


def _function(library: ctypes.CDLL, name: str, parameters: tuple[Any, ...]) -> Callable[..., int]:
    function: Callable[..., int] = getattr(library, name)
    function.argtypes, function.restype = parameters, _Number  # type: ignore[attr-defined]
    return function
