"""Why NVML cannot be used on a device, and what to do about it."""

from __future__ import annotations

from powerlab.domain.power import Availability
from powerlab.nvml_library.library import DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, MISMATCH, NvmlError
from powerlab.sysroot import Sysroot

_NVIDIA, _DISPLAYS = "0x10de", ("0x03", "0x12")
_INSTALL_PACKAGE = "install it: `pip install 'powerlab[nvidia]'`"
_INSTALL_DRIVER = "install it as your distribution says; a container needs `--gpus all`"
_PERMISSION_REMEDY = (
    "run powerlab as root, or let this user open the driver's devices: `ls -l /dev/nvidia*` shows their group, and"
    " `sudo usermod -aG GROUP $USER` adds the user to it; a container needs `--gpus all`"
)


class NvmlUnavailableError(Exception):
    """NVML cannot be used: in which way, in one sentence, and what to do about it."""

    def __init__(self, availability: Availability, detail: str, remedy: str = "") -> None:
        super().__init__(detail)
        self.availability, self.detail, self.remedy = availability, detail, remedy


def unavailable(error: NvmlError, sysroot: Sysroot) -> NvmlUnavailableError:
    """Say what an error of the whole library means on a device, and what to do about it."""
    if error.code == LIBRARY_NOT_FOUND:
        return _nothing(sysroot, "NVIDIA's driver is not installed (libnvidia-ml.so.1 is missing)", _INSTALL_DRIVER)
    if error.code == DRIVER_NOT_LOADED:
        return NvmlUnavailableError(
            Availability.BROKEN,
            "NVIDIA's library is installed, but its driver is not loaded",
            "load it with `sudo modprobe nvidia`; `sudo dmesg | grep -i nvidia` says why it may refuse",
        )
    if error.code == MISMATCH:
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


def no_package(sysroot: Sysroot) -> NvmlUnavailableError:
    """Say that the package nvidia-ml-py is missing."""
    what = "the Python package nvidia-ml-py is not installed"
    if sysroot.path("/proc/driver/nvidia/version").exists():
        return NvmlUnavailableError(Availability.BROKEN, f"there is an NVIDIA driver, but {what}", _INSTALL_PACKAGE)
    return _nothing(sysroot, what, _INSTALL_PACKAGE)


def _nothing(sysroot: Sysroot, what: str, remedy: str) -> NvmlUnavailableError:
    """Say that something is missing; that matters only where there is a card."""
    if _has_card(sysroot):
        return NvmlUnavailableError(Availability.BROKEN, f"there is an NVIDIA card, but {what}", remedy)
    return NvmlUnavailableError(Availability.ABSENT, "no NVIDIA card")


def _has_card(sysroot: Sysroot) -> bool:
    """Look for a PCI device by NVIDIA of the class of displays and accelerators (kernel, ABI sysfs-bus-pci)."""
    for path in sysroot.glob("/sys/bus/pci/devices/*/vendor"):
        try:
            kind = sysroot.read(f"{path.rpartition('/')[0]}/class")
            if sysroot.read(path) == _NVIDIA and kind.startswith(_DISPLAYS):
                return True
        except OSError:
            continue  # a device that goes away just now is no card to measure
    return False
