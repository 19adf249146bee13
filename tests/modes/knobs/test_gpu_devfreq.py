from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.domain.power import Availability
from powerlab.modes.controller import ModeController
from powerlab.modes.io import frequency_range
from powerlab.modes.io.files import write_value
from powerlab.modes.knobs import gpu_devfreq as module
from powerlab.modes.knobs.gpu_devfreq import GpuDevfreq
from powerlab.sysroot import Sysroot

DEVFREQ = "/sys/class/devfreq"
GPU = f"{DEVFREQ}/17000000.gv11b"
Put = Callable[[str, str], None]
Make = Callable[[dict[str, str]], Sysroot]


def device(name: str, clocks: str = "100000000 200000000 400000000") -> dict[str, str]:
    low, *_, high = clocks.split()
    values = {"available_frequencies": clocks, "min_freq": low, "max_freq": high, "governor": "simple_ondemand"}
    return {f"{DEVFREQ}/{name}/{file}": text for file, text in values.items()}


def test_a_machine_without_one_says_so(tmp_path: Path, make_tree: Make) -> None:
    for sysroot in (
        Sysroot(tmp_path),
        make_tree(device("15340000.vic") | device("bus-dmc") | device("13e00000.ufshc")),
    ):
        assert GpuDevfreq().probe(sysroot).availability is Availability.ABSENT
        assert list(GpuDevfreq().modes(sysroot)) == list(GpuDevfreq().read(sysroot)) == []


@pytest.mark.parametrize(
    "name",
    [
        "57000000.gpu", "17000000.gp10b", "17000000.gv11b", "17000000.ga10b", "17000000.gpu", "gpu-gpc-0",
        "ff9a0000.gpu", "fb000000.gpu-panthor", "13000000.mali",
    ],
)  # fmt: skip
def test_graphics_processors_of_many_boards_are_known(make_tree: Make, name: str) -> None:
    board = make_tree(device(name))
    assert GpuDevfreq().probe(board).detail == f"{name} from 100000000 to 400000000 Hz"
    assert [mode.name for mode in GpuDevfreq().modes(board)] == ["gpu-max=100000000Hz", "gpu-max=200000000Hz"]
    assert [item.target for item in GpuDevfreq().read(board)] == [
        f"{name}.{p}" for p in ("governor", "max_hz", "min_hz")
    ]


def test_caps_come_from_the_clock_table_and_never_raise_the_limit(board: Sysroot, put: Put) -> None:
    names = [mode.name for mode in GpuDevfreq().modes(board)]
    assert names == ["gpu-max=318750000Hz", "gpu-max=675750000Hz", "gpu-max=1032750000Hz"]
    put(f"{GPU}/max_freq", "624750000")
    assert [mode.name for mode in GpuDevfreq().modes(board)] == names[:1]


@pytest.mark.parametrize(
    ("name", "part", "value"),
    [
        ("gpu-max=522750000Hz", "max_hz", "522750000"),
        ("gpu-max=600000000Hz", "max_hz", "522750000"),
        ("gpu-min=600000000Hz", "min_hz", "624750000"),
        ("gpu-min=114750000Hz", "min_hz", "114750000"),
    ],
)
def test_a_limit_is_rounded_so_that_it_holds(board: Sysroot, name: str, part: str, value: str) -> None:
    mode = GpuDevfreq().parse(board, name)
    assert mode is not None
    assert mode.name == name
    assert mode.settings == (Setting(knob="gpu_devfreq", target=f"17000000.gv11b.{part}", value=value),)


@pytest.mark.parametrize("name", ["gpu-max=1Hz", "gpu-max=1377000001Hz", "gpu-max=522MHz", "gpu-min=Hz", "gpu-max=0Hz"])
def test_what_is_impossible_is_refused(board: Sysroot, name: str) -> None:
    with pytest.raises(PowerlabError, match=r"from 114750000 to 1377000000 Hz|states no number in Hz"):
        GpuDevfreq().parse(board, name)


def test_odd_limits_and_a_governor_set_by_hand_come_back(board: Sysroot, controller: ModeController, put: Put) -> None:
    put(f"{GPU}/min_freq", "905250000")
    put(f"{GPU}/max_freq", "1236750000")
    put(f"{GPU}/governor", "userspace")
    before = list(GpuDevfreq().read(board))
    with controller.applied("gpu-max=420750000Hz"):
        assert board.read(f"{GPU}/max_freq") == board.read(f"{GPU}/min_freq") == "420750000"
    assert list(GpuDevfreq().read(board)) == before
    with controller.applied("gpu-min=1377000000Hz"):
        assert board.read(f"{GPU}/max_freq") == "1377000000"
    assert list(GpuDevfreq().read(board)) == before


def test_a_driver_that_rounds_is_found_out(board: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        frequency_range, "write_value", lambda sysroot, path, value: write_value(sysroot, path, "318750000")
    )
    with pytest.raises(PowerlabError, match="reads 318750000"):
        GpuDevfreq().write(board, Setting(knob="gpu_devfreq", target="17000000.gv11b.max_hz", value="420750000"))


def test_a_driver_without_a_table_is_broken_and_not_a_crash(make_tree: Make) -> None:
    files = device("ff9a0000.gpu")
    del files[f"{DEVFREQ}/ff9a0000.gpu/available_frequencies"]
    board = make_tree(files)
    assert GpuDevfreq().probe(board).availability is Availability.BROKEN
    assert list(GpuDevfreq().modes(board)) == []
    with pytest.raises(PowerlabError, match="are unknown"):
        GpuDevfreq().parse(board, "gpu-max=100000000Hz")


@pytest.mark.parametrize("target", ["17000000.gv11b.colour", "15340000.vic.max_hz", "../gpu.max_hz", "max_hz"])
def test_a_setting_that_does_not_exist_is_refused(board: Sysroot, target: str) -> None:
    with pytest.raises(PowerlabError, match="has no setting"):
        GpuDevfreq().write(board, Setting(knob="gpu_devfreq", target=target, value="114750000"))


def test_a_user_who_may_not_is_told(board: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "can_write", lambda sysroot, path: False)
    assert GpuDevfreq().probe(board).availability is Availability.DENIED
