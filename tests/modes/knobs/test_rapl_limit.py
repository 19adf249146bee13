from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.domain.power import Availability
from powerlab.modes.controller import ModeController
from powerlab.modes.io.files import write_value
from powerlab.modes.io.permissions import FilePermission
from powerlab.modes.knobs import rapl_limit as module
from powerlab.modes.knobs.rapl_limit import RaplLimit
from powerlab.sysroot import Sysroot

CLASS = "/sys/class/powercap"
Make = Callable[[dict[str, str]], Sysroot]


def zone(
    name: str, title: str, long_uw: int = 125_000_000, short_uw: int = 188_000_000, most_uw: int = 150_000_000
) -> dict[str, str]:
    values = {
        "name": title,
        "enabled": "1",
        "constraint_0_name": "long_term",
        "constraint_0_power_limit_uw": str(long_uw),
        "constraint_0_max_power_uw": str(most_uw),
        "constraint_1_name": "short_term",
        "constraint_1_power_limit_uw": str(short_uw),
        "constraint_1_max_power_uw": "0",
    }
    return {f"{CLASS}/{name}/{file}": text for file, text in values.items()}


@pytest.fixture
def machine(make_tree: Make) -> Sysroot:
    """Two packages, one of them limited by hand, a core domain, the platform's own domain, and a memory-mapped twin."""
    return make_tree(
        zone("intel-rapl:0", "package-0")
        | zone("intel-rapl:0:0", "core")
        | zone("intel-rapl:1", "package-1", long_uw=90_125_000)
        | zone("intel-rapl:2", "psys")
        | zone("intel-rapl-mmio:0", "package-0")
    )


def limit(board: Sysroot, name: str, constraint: int = 0) -> str:
    return board.read(f"{CLASS}/{name}/constraint_{constraint}_power_limit_uw")


def test_a_machine_without_packages_says_so(tmp_path: Path) -> None:
    assert RaplLimit().probe(Sysroot(tmp_path)).availability is Availability.ABSENT
    assert list(RaplLimit().read(Sysroot(tmp_path))) == list(RaplLimit().modes(Sysroot(tmp_path))) == []


def test_packages_that_count_and_take_no_limit_are_no_knob(make_tree: Make) -> None:
    """As AMD's do."""
    machine = make_tree({f"{CLASS}/intel-rapl:0/name": "package-0", f"{CLASS}/intel-rapl:0/energy_uj": "1"})
    assert RaplLimit().probe(machine).availability is Availability.ABSENT


def test_only_packages_are_limited(machine: Sysroot, state_dir: Path) -> None:
    assert RaplLimit().probe(machine).detail == "package-0 up to 125 W, package-1 up to 90.125 W"
    with ModeController(machine, state_dir).applied("package-limit=65W"):
        for name in ("intel-rapl:0", "intel-rapl:1"):
            assert (limit(machine, name), limit(machine, name, 1)) == ("65000000", "65000000")
        for name in ("intel-rapl:0:0", "intel-rapl:2", "intel-rapl-mmio:0"):
            assert limit(machine, name) == "125000000"
    assert (limit(machine, "intel-rapl:0"), limit(machine, "intel-rapl:0", 1)) == ("125000000", "188000000")
    assert limit(machine, "intel-rapl:1") == "90125000", "what it was, not the maker's"


def test_the_modes_are_parts_of_what_a_package_is_built_for(machine: Sysroot, make_tree: Make) -> None:
    assert [mode.name for mode in RaplLimit().modes(machine)] == ["package-limit=75W"], "112 W would raise a limit"
    unstated = make_tree(zone("intel-rapl:0", "package-0", most_uw=0) | zone("intel-rapl:1", "package-1", most_uw=0))
    assert [mode.name for mode in RaplLimit().modes(unstated)] == ["package-limit=62W", "package-limit=94W"]


@pytest.mark.parametrize(
    "name", ["package-limit=0W", "package-limit=0.5W", "package-limit=151W", "package-limit=1000000W"]
)
def test_limits_out_of_range_are_refused_with_the_range(machine: Sysroot, name: str) -> None:
    with pytest.raises(PowerlabError, match="takes 1 to 150 W"):
        RaplLimit().parse(machine, name)


@pytest.mark.parametrize("name", ["package-limit=65", "package-limit=65kW", "package-limit=W", "package-limit=6e1W"])
def test_malformed_limits_are_refused_with_an_example(machine: Sysroot, name: str) -> None:
    with pytest.raises(PowerlabError, match="write it like package-limit=65W"):
        RaplLimit().parse(machine, name)


def test_a_limit_may_have_a_fraction(machine: Sysroot) -> None:
    mode = RaplLimit().parse(machine, "package-limit=62.5W")
    assert mode is not None
    assert mode.settings[0].value == "62500000"
    assert mode.description == "each processor package draws at most 62.5 W"


def test_limits_that_are_off_are_switched_on_and_off_again(machine: Sysroot, state_dir: Path) -> None:
    machine.path(f"{CLASS}/intel-rapl:1/enabled").write_text("0\n")
    with ModeController(machine, state_dir).applied("package-limit=65W"):
        assert machine.read(f"{CLASS}/intel-rapl:1/enabled") == "1"
    assert machine.read(f"{CLASS}/intel-rapl:1/enabled") == "0"


def test_a_processor_that_rounds_is_told(machine: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        module,
        "write_value",
        lambda sysroot, path, value: write_value(sysroot, path, str(int(value) // 125000 * 125000)),
    )
    target = "intel-rapl:0.constraint_0_power_limit_uw"
    RaplLimit().write(machine, Setting(knob="rapl_limit", target=target, value="65125000"))
    with pytest.raises(PowerlabError, match="was set to 65100000 and reads 65000000"):
        RaplLimit().write(machine, Setting(knob="rapl_limit", target=target, value="65100000"))


def test_a_locked_limit_is_told(machine: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(sysroot: Sysroot, path: str, value: str) -> None:
        raise PowerlabError(f"{path} does not take {value!r} (permission denied).")

    monkeypatch.setattr(module, "write_value", refuse)
    with pytest.raises(PowerlabError, match="the firmware has locked the limits"):
        RaplLimit().write(machine, RaplLimit().read(machine)[0])


@pytest.mark.parametrize("target", ["intel-rapl:0.energy_uj", "intel-rapl:0:0.enabled", "psys.enabled", "../x.enabled"])
def test_a_setting_that_does_not_exist_is_refused(machine: Sysroot, target: str) -> None:
    with pytest.raises(PowerlabError, match="has no setting"):
        RaplLimit().write(machine, Setting(knob="rapl_limit", target=target, value="1"))


def test_a_user_who_may_not_is_told(machine: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "can_write", lambda sysroot, path: False)
    assert RaplLimit().probe(machine).availability is Availability.DENIED


def test_what_a_board_without_limits_says_can_go_back_through_the_helper() -> None:
    path = f"{CLASS}/intel-rapl:0/constraint_0_power_limit_uw"
    assert any(
        isinstance(grant, FilePermission) and grant.covers(path, "4095875000") for grant in RaplLimit().permissions
    )


def test_a_limit_that_is_not_used_is_left_alone(make_tree: Make, state_dir: Path) -> None:
    """Some firmware says 0 W for a limit that it does not have: nobody may set that, so it could not go back."""
    machine = make_tree(zone("intel-rapl:0", "package-0", short_uw=0))
    with ModeController(machine, state_dir).applied("package-limit=65W"):
        assert (limit(machine, "intel-rapl:0"), limit(machine, "intel-rapl:0", 1)) == ("65000000", "0")
    assert (limit(machine, "intel-rapl:0"), limit(machine, "intel-rapl:0", 1)) == ("125000000", "0")
