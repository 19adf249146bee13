"""Fixture trees: small pictures of the sysfs of real machines, as their kernels write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from powerlab.sysroot import Sysroot
from trees import Files, write_tree

IIO = "/sys/bus/i2c/drivers/ina3221x"
INA = "/sys/bus/i2c/drivers/ina3221"
RAPL = "/sys/class/powercap"
HWMON = "/sys/class/hwmon"


def iio_chip(address: str, number: int, channels: Mapping[str, tuple[int, int]]) -> Files:
    """A chip as JetPack 4 shows it: rail name -> (mV, mA)."""
    chip = f"{IIO}/{address}/iio:device{number}"
    files: dict[str, object] = {}
    for index, (name, (millivolts, milliamps)) in enumerate(channels.items()):
        files[f"{chip}/rail_name_{index}"] = name
        files[f"{chip}/in_voltage{index}_input"] = millivolts
        files[f"{chip}/in_current{index}_input"] = milliamps
        files[f"{chip}/in_power{index}_input"] = millivolts * milliamps // 1000
    return files


def hwmon_ina(address: str, number: int, channels: Mapping[int, tuple[str, object, object]]) -> Files:
    """A chip as JetPack 5 and 6 show it: channel number -> (label, mV, mA)."""
    chip = f"{INA}/{address}/hwmon/hwmon{number}"
    files: dict[str, object] = {f"{chip}/name": "ina3221", f"{chip}/in7_label": "sum of shunt voltages"}
    for index, (label, millivolts, milliamps) in channels.items():
        files[f"{chip}/in{index}_label"] = label
        files[f"{chip}/in{index}_input"] = millivolts
        files[f"{chip}/in{index}_enable"] = 1
        files[f"{chip}/in{index + 3}_input"] = 80
        files[f"{chip}/curr{index}_input"] = milliamps
        files[f"{chip}/shunt{index}_resistor"] = 2000
    return files


def zone(name: str, title: str, energy_uj: object = 240422366267, top: str = "") -> Files:
    """A powercap zone."""
    path = f"{RAPL}/{top}{name}"
    return {f"{path}/name": title, f"{path}/energy_uj": energy_uj, f"{path}/max_energy_range_uj": 262143328850}


def chip(number: int, name: str, files: Files) -> Files:
    """A hwmon chip."""
    return {f"{HWMON}/hwmon{number}/name": name, **{f"{HWMON}/hwmon{number}/{key}": v for key, v in files.items()}}


def compatible(text: str) -> Files:
    """The device tree's word for the board."""
    return {"/proc/device-tree/compatible": f"{text}\0nvidia,tegra\0"}


PROC_STAT = "cpu  100 0 50 800 10 0 5 1 0 0\ncpu0 50 0 25 400 5 0 3 1 0 0\ncpu1 50 0 25 400 5 0 2 0 0 0\nintr 5"

XAVIER_RAILS = (
    {"GPU": (19248, 60), "CPU": (19248, 20), "SOC": (19248, 130)},
    {"CV": (19248, 0), "VDDRQ": (19248, 10), "SYS5V": (19248, 140)},
)
MACHINES: dict[str, Files] = {
    "nothing": {},
    "bare": {"/proc/stat": PROC_STAT},
    "xavier-jp4": {
        **compatible("nvidia,p2972-0000"),
        **iio_chip("1-0040", 0, XAVIER_RAILS[0]),
        **iio_chip("1-0041", 1, XAVIER_RAILS[1]),
    },
    "xavier-jp5": {
        **compatible("nvidia,p2972-0000"),
        **hwmon_ina("1-0040", 3, {1: ("GPU", 19248, 60), 2: ("CPU", 19248, 20), 3: ("SOC", 19248, 130)}),
        **hwmon_ina("1-0041", 4, {1: ("CV", 19248, 0), 2: ("VDDRQ", 19248, 10), 3: ("SYS5V", 19248, 140)}),
        # The class directory lists the very same chips.
        **chip(3, "ina3221", {"in1_input": 19248, "curr1_input": 60}),
    },
    "orin": {
        **compatible("nvidia,p3737-0000+p3701-0000"),
        **hwmon_ina(
            "1-0040",
            3,
            {1: ("VDD_GPU_SOC", 12008, 280), 2: ("VDD_CPU_CV", 12008, 40), 3: ("VIN_SYS_5V0", 4968, 980)},
        ),
        # Channel 1 is unconnected, and channel 3 answers no read: a directory stands for the failing file.
        **hwmon_ina("1-0041", 4, {1: ("NC", 0, 0), 2: ("VDDQ_VDD2_1V8AO", 4968, 80), 3: ("SPARE", None, 0)}),
    },
    "orin-nano": {
        **compatible("nvidia,p3768-0000+p3767-0003"),
        **hwmon_ina(
            "1-0040", 1, {1: ("VDD_IN", 5008, 950), 2: ("VDD_CPU_GPU_CV", 5008, 100), 3: ("VDD_SOC", 5008, 280)}
        ),
    },
    "unknown-jetson": hwmon_ina("1-0040", 1, {1: ("A", 5000, 100), 2: ("B", 5000, 200)}),
    "xeon": {
        **zone("intel-rapl:0", "package-0"),
        **zone("intel-rapl:0:0", "core"),
        **zone("intel-rapl:0:1", "dram"),
        **zone("intel-rapl:1", "package-1"),
        **zone("intel-rapl:1:0", "dram"),
        **zone("intel-rapl:2", "psys"),
        **zone("intel-rapl-mmio:0", "package-0"),
        **zone("intel-rapl-mmio:0:0", "dram"),
        f"{RAPL}/intel-rapl/enabled": 1,
    },
    "laptop-psys": zone("intel-rapl:0", "psys"),
    "altra": chip(
        2,
        "altra_hwmon",
        {"temp1_label": "SoC Temp 000", "temp1_input": 40000}
        | {f"energy{n}_label": f"Core Energy {n:03d}" for n in range(1, 13)}
        | {f"energy{n}_input": 1000000 + n for n in range(1, 13)},
    ),
    "xgene": chip(
        0,
        "apm_xgene",
        {"power1_label": "CPU power", "power1_input": 22040000, "power2_label": "IO power", "power2_input": 9000000},
    ),
    "power-meter": chip(
        5,
        "power_meter",
        {"power1_average": 143000000, "power1_accuracy": "95.0%", "power1_average_interval": 1000, "power1_cap": 1},
    ),
    "grace": {
        **chip(1, "power_meter", {"power1_average": 300000000, "power1_oem_info": "Module Power Socket 0"}),
        **chip(2, "power_meter", {"power1_average": 150000000, "power1_oem_info": "Grace Power Socket 0"}),
        **chip(3, "power_meter", {"power1_average": 90000000, "power1_oem_info": "CPU Power Socket 0"}),
        **chip(4, "power_meter", {"power1_average": 4294967295000, "power1_oem_info": "SysIO Power Socket 0"}),
    },
    "amdgpu": chip(4, "amdgpu", {"power1_label": "PPT", "power1_average": 30000000, "power1_input": 31000000}),
    "apu": chip(4, "amdgpu", {"power1_label": "slowPPT", "power1_average": 15000000}),
    "psu": chip(
        7, "pmbus", {"power1_label": "pin", "power1_input": 200000000, "power2_label": "pout1", "power2_input": 1}
    ),
}


@pytest.fixture
def machine(tmp_path: Path) -> Callable[[str], Sysroot]:
    """Return a function that writes one of :data:`MACHINES` and returns its sysroot."""
    return lambda name: write_tree(tmp_path, MACHINES[name])


@pytest.fixture
def tree(tmp_path: Path) -> Callable[[Files], Sysroot]:
    """Return a function that writes files and returns their sysroot."""
    return lambda files: write_tree(tmp_path, files)


@pytest.fixture
def rapl_zone() -> Callable[..., Files]:
    """Return the function that draws a powercap zone."""
    return zone


@pytest.fixture
def hwmon_chip() -> Callable[..., Files]:
    """Return the function that draws a hwmon chip."""
    return chip


@pytest.fixture
def deny(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that makes files with this ending unreadable; root's own rights would let the tests through."""
    honest = Sysroot.read

    def install(ending: str) -> None:
        def read(self: Sysroot, path: str) -> str:
            if path.endswith(ending):
                raise PermissionError(13, "Permission denied", path)
            return honest(self, path)

        monkeypatch.setattr(Sysroot, "read", read)

    return install
