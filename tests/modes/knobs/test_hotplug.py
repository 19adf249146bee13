from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.domain.power import Availability
from powerlab.modes.controller import ModeController
from powerlab.modes.knobs import hotplug as module
from powerlab.modes.knobs.hotplug import Hotplug
from powerlab.sysroot import Sysroot

CPU = "/sys/devices/system/cpu"
Put = Callable[[str, str], None]
Make = Callable[[dict[str, str]], Sysroot]


def setting(core: int, online: int) -> Setting:
    return Setting(knob="hotplug", target=f"cpu{core}", value=str(online))


def x86(make_tree: Make, cores: int, fixed: int = 1) -> Sysroot:
    """A PC, where the first core has no file ``online``."""
    files = {f"{CPU}/cpu{core}/topology/core_id": str(core) for core in range(cores)}
    return make_tree(
        files | {f"{CPU}/cpu{core}/online": "1" for core in range(fixed, cores)} | {f"{CPU}/cpuidle/x": ""}
    )


def test_a_machine_that_cannot_says_so(tmp_path: Path, make_tree: Make) -> None:
    for sysroot in (Sysroot(tmp_path), x86(make_tree, cores=4, fixed=4)):
        assert Hotplug().probe(sysroot).availability is Availability.ABSENT
        assert list(Hotplug().read(sysroot)) == []
        assert list(Hotplug().modes(sysroot)) == []


def test_the_first_cores_stay_and_all_others_go(board: Sysroot) -> None:
    mode = Hotplug().parse(board, "cores=3")
    assert mode is not None
    assert mode.online_cores == 3
    assert {item.target: item.value for item in mode.settings} == {
        f"cpu{core}": str(int(core < 3)) for core in range(8)
    }
    assert mode.description == "3 cores online (0 to 2)"


def test_no_core_goes_off_before_all_that_stay_are_on(board: Sysroot) -> None:
    values = [item.value for item in (Hotplug().parse(board, "cores=5") or pytest.fail("its own")).settings]
    assert values == sorted(values, reverse=True)


def test_a_core_without_a_file_counts_and_is_not_touched(make_tree: Make) -> None:
    machine = x86(make_tree, cores=12)
    mode = Hotplug().parse(machine, "cores=2")
    assert mode is not None
    assert mode.online_cores == 2
    assert [item.target for item in mode.settings if item.value == "1"] == ["cpu1"]
    assert len(mode.settings) == 11
    probe = Hotplug().probe(machine)
    assert probe.detail == "12 of 12 cores online, one of them always"
    one = Hotplug().parse(machine, "cores=1")
    assert one is not None
    assert one.description.startswith("1 core online (0)")


def test_cores_that_always_stay_bound_what_can_be_asked_for(make_tree: Make) -> None:
    machine = x86(make_tree, cores=4, fixed=2)
    assert [mode.name for mode in Hotplug().modes(machine)] == ["cores=2", "cores=3"]
    with pytest.raises(PowerlabError, match=r"choose from 2 to 4 cores; 2 cannot be taken offline"):
        Hotplug().parse(machine, "cores=1")


def test_cores_that_stay_need_not_be_the_first_ones(make_tree: Make) -> None:
    machine = make_tree({f"{CPU}/cpu{core}/online": "1" for core in range(3)} | {f"{CPU}/cpu3/topology/core_id": "3"})
    mode = Hotplug().parse(machine, "cores=2")
    assert mode is not None
    assert mode.description.startswith("2 cores online (0, 3)")


@pytest.mark.parametrize("name", ["cores=0", "cores=9", "cores=all", "cores=1.5", "cores=", "cores=-1"])
def test_what_is_impossible_is_refused(board: Sysroot, name: str) -> None:
    with pytest.raises(PowerlabError):
        Hotplug().parse(board, name)


def test_clusters_vanish_with_their_cores_and_come_back_with_their_clocks(
    board: Sysroot, controller: ModeController, put: Put
) -> None:
    put(f"{CPU}/cpufreq/policy6/scaling_governor", "ondemand")
    put(f"{CPU}/cpufreq/policy6/scaling_max_freq", "1881600")
    with controller.applied("cores=2+cpu-max=806400kHz"):
        assert board.read(f"{CPU}/cpu2/online") == "0"
        assert board.read(f"{CPU}/cpufreq/policy0/scaling_max_freq") == "806400"
        assert board.read(f"{CPU}/cpufreq/policy6/scaling_max_freq") == "1881600", "it is offline: no clock to set"
    assert board.read(f"{CPU}/cpu6/online") == "1"
    assert board.read(f"{CPU}/cpufreq/policy6/scaling_max_freq") == "1881600"
    assert board.read(f"{CPU}/cpufreq/policy6/scaling_governor") == "ondemand"


def test_cores_that_were_off_before_are_off_again(board: Sysroot, controller: ModeController, put: Put) -> None:
    for core in (3, 5):
        put(f"{CPU}/cpu{core}/online", "0")
    assert Hotplug().probe(board).detail == "6 of 8 cores online"
    with controller.applied("cores=8"):
        assert board.read(f"{CPU}/cpu3/online") == board.read(f"{CPU}/cpu5/online") == "1"
    with controller.applied("cores=4"):
        assert board.read(f"{CPU}/cpu3/online") == "1"
    assert [item.target for item in Hotplug().read(board) if item.value == "0"] == ["cpu3", "cpu5"]


@pytest.mark.parametrize("bad", [setting(1, 2), Setting(knob="hotplug", target="cpu/../x", value="1")])
def test_a_setting_that_does_not_exist_is_refused(board: Sysroot, bad: Setting) -> None:
    with pytest.raises(PowerlabError, match="has no setting"):
        Hotplug().write(board, bad)


def test_a_user_who_may_not_is_told(board: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "can_write", lambda sysroot, path: not path.endswith("cpu5/online"))
    probe = Hotplug().probe(board)
    assert probe.availability is Availability.DENIED
    assert probe.detail == "8 of 8 cores online; this user may not change it"
    assert not any(Hotplug().survives_reboot(item) for item in Hotplug().read(board))
