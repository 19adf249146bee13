"""Read the device state that a run stores; what cannot be read stays unknown.

Kernel: Documentation/admin-guide/pm/cpufreq, ABI/testing/sysfs-class-devfreq, hwmon/sysfs-interface,
ABI/testing/sysfs-class-dmi.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack

from powerlab.domain.device_state import Clock, DeviceState, Fan, Graphics
from powerlab.nvml_library import NvmlError, NvmlUnavailableError, session
from powerlab.power.graphics_processors import graphics_processors
from powerlab.sysroot import Sysroot
from powerlab.throttling.card_clocks import card_clocks

_CPUFREQ = "/sys/devices/system/cpu/cpufreq/policy*"
_DEVFREQ = "/sys/class/devfreq/*"
_DRIVERS = ("nvidia", "amdgpu", "i915", "xe")
_L4T = re.compile(r"#\s*R(?P<major>\d+)\s*\(release\),\s*REVISION:\s*(?P<minor>[0-9.]+)")
_PWM_RPM = "/sys/devices/pwm-fan"  # JetPack 4 has no hwmon for its fan


def read_device_state(sysroot: Sysroot) -> DeviceState:
    """Return the state of the device behind a sysroot now; some milliseconds, more where NVIDIA's driver must wake."""
    return DeviceState(
        kernel=_text(sysroot, "/proc/sys/kernel/osrelease"),
        kernel_build=_text(sysroot, "/proc/sys/kernel/version"),
        l4t_release=parse_l4t_release(_text(sysroot, "/etc/nv_tegra_release")),
        firmware=_firmware(sysroot),
        microcode=_text(sysroot, "/sys/devices/system/cpu/cpu0/microcode/version"),
        drivers=tuple(_drivers(sysroot)),
        cpu_clocks=tuple(_cpu_clocks(sysroot)),
        graphics=tuple(_graphics(sysroot)),
        device_clocks=(*_device_clocks(sysroot), *_card_clocks(sysroot)),
        fans=tuple(_fans(sysroot)),
    )


def parse_l4t_release(text: str) -> str:
    """Return ``R35.4.1`` from the first line of ``/etc/nv_tegra_release``; empty where it says something else."""
    found = _L4T.match(text)
    return f"R{found['major']}.{found['minor']}" if found else ""


def _firmware(sysroot: Sysroot) -> str:
    parts = (_text(sysroot, f"/sys/class/dmi/id/bios_{name}") for name in ("vendor", "version", "date"))
    return " ".join(part for part in parts if part)


def _drivers(sysroot: Sysroot) -> Iterator[str]:
    for name in _DRIVERS:
        if version := _text(sysroot, f"/sys/module/{name}/version"):
            yield f"{name} {version}"


def _cpu_clocks(sysroot: Sysroot) -> Iterator[Clock]:
    for path in sysroot.glob(_CPUFREQ):
        low, high, now = (_khz(sysroot, f"{path}/scaling_{name}_freq") for name in ("min", "max", "cur"))
        governor = _text(sysroot, f"{path}/scaling_governor")
        yield Clock(name=_last(path), governor=governor, low_hz=low, high_hz=high, now_hz=now)


def _device_clocks(sysroot: Sysroot) -> Iterator[Clock]:
    for path in sysroot.glob(_DEVFREQ):
        low, high, now = (_number(sysroot, f"{path}/{name}_freq") for name in ("min", "max", "cur"))
        yield Clock(name=_last(path), governor=_text(sysroot, f"{path}/governor"), low_hz=low, high_hz=high, now_hz=now)


def _graphics(sysroot: Sysroot) -> Iterator[Graphics]:
    for gpu in graphics_processors(sysroot):
        yield Graphics(name=gpu.name, driver=gpu.driver, memory_bytes=gpu.memory_bytes)


def _card_clocks(sysroot: Sysroot) -> Iterator[Clock]:
    with ExitStack() as stack:
        try:
            library = stack.enter_context(session(sysroot))
            cards = library, library.devices()
        except (NvmlUnavailableError, NvmlError):
            cards = None
        for clock in card_clocks(sysroot, cards):
            yield Clock(name=clock.name, high_hz=_hz(clock.limit_mhz), now_hz=_hz(clock.read_mhz()))


def _hz(clock_mhz: float | None) -> int | None:
    return None if clock_mhz is None else round(clock_mhz * 1e6)


def _fans(sysroot: Sysroot) -> Iterator[Fan]:
    for chip in sysroot.glob("/sys/class/hwmon/hwmon*"):
        driver = _text(sysroot, f"{chip}/name")
        files = [*sysroot.glob(f"{chip}/fan*_input"), *sysroot.glob(f"{chip}/pwm[0-9]")]
        for number in sorted({int(digits) for path in files if (digits := re.sub(r"\D", "", _last(path)))}):
            speed_rpm = _number(sysroot, f"{chip}/fan{number}_input")
            yield Fan(name=f"{driver} {number}", speed_rpm=speed_rpm, pwm=_number(sysroot, f"{chip}/pwm{number}"))
        if (speed_rpm := _number(sysroot, f"{chip}/rpm")) is not None:  # a Jetson's tachometer from JetPack 5 on
            yield Fan(name=driver, speed_rpm=speed_rpm)
    if (pwm := _number(sysroot, f"{_PWM_RPM}/cur_pwm")) is not None:
        yield Fan(name="pwm-fan", pwm=pwm, speed_rpm=_number(sysroot, f"{_PWM_RPM}/rpm_measured"))


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _khz(sysroot: Sysroot, path: str) -> int | None:
    number = _number(sysroot, path)
    return None if number is None else 1000 * number


def _number(sysroot: Sysroot, path: str) -> int | None:
    text = _text(sysroot, path)
    return int(text) if text.isascii() and text.isdigit() else None


def _text(sysroot: Sysroot, path: str) -> str:
    """Return a file's first line; empty where it cannot be read."""
    try:
        return sysroot.read(path).partition("\n")[0].strip()
    except OSError:
        return ""
