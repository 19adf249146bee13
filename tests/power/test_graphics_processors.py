"""The doctor's list of graphics processors: what each is and how good its figures of power are, or that it has none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from nvidia_cards import CARD, SILENT, write_cards
from powerlab.cli.commands.doctor.report import _graphics
from powerlab.cli.output.page import Page
from powerlab.power.graphics_processors import Gpu, graphics_processors
from powerlab.power.registry import probe_all
from powerlab.sysroot import Sysroot

Tree = Callable[[Mapping[str, object]], Sysroot]


def found(sysroot: Sysroot) -> tuple[Gpu, ...]:
    return graphics_processors(sysroot, probe_all(sysroot))


def test_nvidia_s_cards_with_driver_memory_and_figures(tmp_path: Path) -> None:
    facts = {"name": "NVIDIA H100 PCIe", "compute_capability": 90, "memory_mib": 81559}
    first, second = found(write_cards(tmp_path, [{**CARD, **facts}, SILENT], driver_version="570.133.20"))
    assert (first.name, first.driver, first.memory_bytes) == ("NVIDIA H100 PCIe", "nvidia 570.133.20", 81559 << 20)
    assert first.power == (
        "nvml:GPU0: energy counter, ±5.0%, new every 0.1 s, looks 25% of the time",
        "nvml:GPU0 instant: power, ±5.0%, new every 0.1 s, looks 25% of the time",
        "nvml:GPU0 average: averaged power, ±5.0%, new every 1 s, looks 25% of the time",
    )
    assert (second.memory_bytes, second.power) == (None, ())


@pytest.fixture
def on_pci(tmp_path: Path) -> Callable[..., Sysroot]:
    """Return a function that writes a PCI device with a hwmon chip, and the class's link to it."""

    def write(vendor: str, chip: str, files: Mapping[str, object], more: Mapping[str, object]) -> Sysroot:
        device = tmp_path / "sys/devices/pci0000:00/0000:03:00.0"
        hwmon = device / "hwmon/hwmon2"
        hwmon.mkdir(parents=True)
        everything = {"vendor": vendor, "class": "0x030000", "device": "0x744c", **more}
        for folder, texts in ((device, everything), (hwmon, {"name": chip, **files})):
            for name, text in texts.items():
                (folder / name).write_text(f"{text}\n")
        (hwmon / "device").symlink_to("../..")
        for path, target in (
            ("sys/class/hwmon/hwmon2", "../../devices/pci0000:00/0000:03:00.0/hwmon/hwmon2"),
            ("sys/bus/pci/devices/0000:03:00.0", "../../../devices/pci0000:00/0000:03:00.0"),
        ):
            (tmp_path / path).parent.mkdir(parents=True)
            (tmp_path / path).symlink_to(target)
        return Sysroot(tmp_path)

    return write


def test_an_amd_card(on_pci: Callable[..., Sysroot]) -> None:
    (gpu,) = found(on_pci("0x1002", "amdgpu", {"power1_average": 9_000_000}, {"mem_info_vram_total": 25753026560}))
    assert gpu.name == "AMD graphics 0x744c at 0000:03:00.0"
    assert gpu.memory_bytes == 25753026560
    assert gpu.power == ("amdgpu:GPU0: power, ±10.0%, new every 1 s",)


def test_an_intel_card_and_its_package(on_pci: Callable[..., Sysroot]) -> None:
    (gpu,) = found(on_pci("0x8086", "xe", {"energy1_input": 5, "energy2_input": 4}, {}))
    assert gpu.power == (
        "intel_gpu:GPU0: energy counter, ±10.0%, new every 0.001 s",
        "intel_gpu:GPU0 package: energy counter, ±10.0%, new every 0.001 s, a part of the card",
    )


def test_a_processor_without_a_sensor_is_said_and_not_0_watts(
    on_pci: Callable[..., Sysroot], capsys: pytest.CaptureFixture[str]
) -> None:
    (gpu,) = found(on_pci("0x8086", "i915", {"temp1_input": 40_000}, {}))
    assert gpu.power == ()
    _graphics(Page(), [{"name": gpu.name, "driver": gpu.driver, "memory_bytes": None, "power": []}])
    said = capsys.readouterr().out
    assert "Intel graphics 0x744c at 0000:03:00.0, no driver" in said
    assert "no power sensor that can be read: a run there has no watts of it" in said


def test_a_board_s_rail_says_that_it_feeds_other_parts_too(tree: Tree) -> None:
    chip = "/sys/bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon3"
    rail = {"in1_label": "VDD_CPU_GPU_CV", "in1_input": 12008, "curr1_input": 280, "shunt1_resistor": 2000}
    files = {f"{chip}/name": "ina3221", **{f"{chip}/{name}": value for name, value in rail.items()}}
    (gpu,) = found(tree({**files, "/sys/class/devfreq/17000000.gpu/min_freq": 306000000}))
    assert gpu.name == "the board's 17000000.gpu"
    assert [words.endswith("with other parts of the board") for words in gpu.power] == [True]


def test_none(tree: Tree) -> None:
    assert found(tree({"/proc/meminfo": "MemTotal: 1 kB"})) == ()
