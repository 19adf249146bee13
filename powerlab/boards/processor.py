"""The processor's name, as the kernel gives it."""

from __future__ import annotations

from powerlab.sysroot import Sysroot

UNKNOWN = "unknown"


def parse_cpu_model(cpuinfo: str) -> str:
    """Return the processor's own name from the text of ``/proc/cpuinfo``; arm64 kernels may give only numbers."""
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    for name in ("model name", "Model", "Hardware"):
        if fields.get(name):
            return fields[name]
    if "CPU part" in fields:
        return f"implementer {fields.get('CPU implementer', '?')} part {fields['CPU part']}"
    return UNKNOWN


def cpu_model(sysroot: Sysroot) -> str:
    """Return the processor's name; a device tree's board model stands in where ``/proc/cpuinfo`` has none."""
    model = parse_cpu_model(_read(sysroot, "/proc/cpuinfo"))
    if model == UNKNOWN:
        return _read(sysroot, "/proc/device-tree/model").rstrip("\0") or UNKNOWN
    return model


def clock_limits_khz(sysroot: Sysroot) -> tuple[int, ...]:
    """Return the highest clock that each cluster of cores may run at now, which a power mode sets; empty: unknown."""
    texts = (_read(sysroot, path) for path in sysroot.glob("/sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq"))
    return tuple(int(text) for text in texts if text.isascii() and text.isdigit())


def _read(sysroot: Sysroot, path: str) -> str:
    try:
        return sysroot.read(path)
    except OSError:
        return ""
