"""What a run keeps of its device: from the files of real boards, and nothing where there are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from powerlab.boards.registry import BOARDS
from powerlab.boards.simulator.tree import create_tree
from powerlab.domain.device_state import Clock, DeviceState, Fan, Graphics
from powerlab.measure.recording.device_state import parse_l4t_release, read_device_state
from powerlab.sysroot import Sysroot


def tree(folder: Path, files: dict[str, str]) -> Sysroot:
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{text}\n")
    return Sysroot(folder)


def test_where_there_is_no_file_nothing_is_known(tmp_path: Path) -> None:
    assert read_device_state(Sysroot(tmp_path)) == DeviceState()


def test_a_jetson(tmp_path: Path) -> None:
    """As JetPack 5 has it; the head of its release file is NVIDIA's own."""
    release = "# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref, EABI: aarch64, DATE: Tue Aug  1 2023"
    policy, gpu = "sys/devices/system/cpu/cpufreq/policy0", "sys/class/devfreq/17000000.gv11b"
    state = read_device_state(
        tree(
            tmp_path,
            {
                "etc/nv_tegra_release": release,
                "proc/sys/kernel/osrelease": "5.10.120-tegra",
                "proc/sys/kernel/version": "#1 SMP PREEMPT Tue Aug 1 12:32:50 PDT 2023",
                "sys/class/dmi/id/bios_vendor": "EDK II",
                "sys/class/dmi/id/bios_version": "4.1-33958178",
                "sys/class/dmi/id/bios_date": "08/01/2023",
                f"{policy}/scaling_governor": "schedutil",
                f"{policy}/scaling_min_freq": "115200",
                f"{policy}/scaling_max_freq": "2201600",
                f"{policy}/scaling_cur_freq": "729600",
                f"{gpu}/governor": "nvhost_podgov",
                f"{gpu}/min_freq": "114750000",
                f"{gpu}/max_freq": "1377000000",
                "sys/class/hwmon/hwmon1/name": "pwmfan",
                "sys/class/hwmon/hwmon1/pwm1": "77",
                "sys/class/hwmon/hwmon2/name": "pwm_tach",
                "sys/class/hwmon/hwmon2/rpm": "1710",
            },
        )
    )
    assert state == DeviceState(
        kernel="5.10.120-tegra",
        kernel_build="#1 SMP PREEMPT Tue Aug 1 12:32:50 PDT 2023",
        l4t_release="R35.4.1",
        firmware="EDK II 4.1-33958178 08/01/2023",
        graphics=(Graphics(name="the board's 17000000.gv11b", driver="devfreq"),),
        cpu_clocks=(
            Clock(name="policy0", governor="schedutil", low_hz=115_200_000, high_hz=2_201_600_000, now_hz=729_600_000),
        ),
        device_clocks=(
            Clock(name="17000000.gv11b", governor="nvhost_podgov", low_hz=114_750_000, high_hz=1_377_000_000),
        ),
        fans=(Fan(name="pwmfan 1", pwm=77), Fan(name="pwm_tach", speed_rpm=1710)),
    )


def test_a_workstation_and_a_fan_of_jetpack_4(tmp_path: Path) -> None:
    state = read_device_state(
        tree(
            tmp_path,
            {
                "sys/module/nvidia/version": "550.54.14",
                "sys/devices/system/cpu/cpu0/microcode/version": "0x2b0004b1",
                "sys/class/hwmon/hwmon0/name": "nct6798",
                "sys/class/hwmon/hwmon0/fan1_input": "0",
                "sys/class/hwmon/hwmon0/fan2_input": "1042",
                "sys/class/hwmon/hwmon0/pwm2": "128",
                "sys/class/hwmon/hwmon0/pwm2_enable": "5",
                "sys/devices/pwm-fan/cur_pwm": "120",
                "sys/class/devfreq/dmc/cur_freq": "garbage",
            },
        )
    )
    assert (state.drivers, state.microcode) == (("nvidia 550.54.14",), "0x2b0004b1")
    assert state.fans == (
        Fan(name="nct6798 1", speed_rpm=0),
        Fan(name="nct6798 2", speed_rpm=1042, pwm=128),
        Fan(name="pwm-fan", pwm=120),
    )
    assert state.device_clocks == (Clock(name="dmc"),)


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("# R32 (release), REVISION: 7.1, GCID: 29818004, BOARD: t210ref, EABI: aarch64, DATE: Sat Feb 19", "R32.7.1"),
        ("# R36 (release), REVISION: 3.0, GCID: 36191598, BOARD: generic, EABI: aarch64, DATE: Mon May 6", "R36.3.0"),
        ("Ubuntu 22.04", ""),
        ("", ""),
    ],
)
def test_releases_of_l4t(text: str, release: str) -> None:
    assert parse_l4t_release(text) == release


def test_a_simulated_board_says_what_its_files_say(tmp_path: Path) -> None:
    create_tree("jetson-agx-xavier", tmp_path, 5)
    state = read_device_state(Sysroot(tmp_path))
    assert (state.kernel, state.l4t_release, len(state.cpu_clocks)) == ("5.10.120-tegra", "R35.4.1", 4)
    assert {clock.governor for clock in state.cpu_clocks} == {"schedutil"}
    assert all(clock.low_hz <= clock.now_hz <= clock.high_hz for clock in state.cpu_clocks)
    assert (state.fans, state.firmware) == ((), ""), "no file says anything of them"


@pytest.mark.parametrize("name", [name for name, board in BOARDS.items() if board.simulatable])
def test_every_simulated_board_tells_its_kernel_and_its_clocks(tmp_path: Path, name: str) -> None:
    create_tree(name, tmp_path)
    state = read_device_state(Sysroot(tmp_path))
    assert state.kernel
    assert all(clock.high_hz for clock in state.cpu_clocks)
    assert bool(state.l4t_release) == name.startswith("jetson")


def test_graphics_cards_with_driver_memory_and_clocks(tmp_path: Path) -> None:
    found = {}
    for name in ("h100-workstation", "amd-gpu-workstation", "intel-gpu-workstation"):
        create_tree(name, tmp_path / name)
        found[name] = read_device_state(Sysroot(tmp_path / name))
    cards = {name: state.graphics for name, state in found.items()}
    assert cards == {
        "h100-workstation": (Graphics(name="NVIDIA H100 PCIe", driver="nvidia 570.133.20", memory_bytes=81559 << 20),),
        "amd-gpu-workstation": (
            Graphics(name="AMD Radeon PRO W7900", driver="amdgpu 6.12.12", memory_bytes=46064 << 20),
        ),
        "intel-gpu-workstation": (Graphics(name="Intel graphics 0xe20b at 0000:03:00.0", driver="xe 1.1.0"),),
    }
    clocks = {clock.name: (clock.high_hz, clock.now_hz) for state in found.values() for clock in state.device_clocks}
    assert clocks == {
        "GPU0 clock": (1_755_000_000, 210_000_000),
        "GPU0 memory": (1_593_000_000, 1_593_000_000),
        "amdgpu GPU0 clock": (None, 500_000_000),
        "amdgpu GPU0 memory": (None, 96_000_000),
        "xe GPU0 clock": (2_850_000_000, 400_000_000),
    }
