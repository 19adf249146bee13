"""Batteries: the machine's power while it runs from them, and nothing else."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import Availability, RailQuantity
from powerlab.domain.quantity import Provenance
from powerlab.power.base import PolledChannel
from powerlab.power.registry import probe_all
from powerlab.power.sources.battery.cells import Flow, parse_status
from powerlab.power.sources.battery.source import Battery
from powerlab.power.total import choose_total
from powerlab.sysroot import SIMULATION_MARKER, Sysroot

Tree = Callable[[Mapping[str, object]], Sysroot]
SUPPLIES = "/sys/class/power_supply"


def cell(name: str = "BAT0", **files: object) -> dict[str, object]:
    found: dict[str, object] = {"type": "Battery", "present": 1, "status": "Discharging", "power_now": 8_250_000}
    return {f"{SUPPLIES}/{name}/{key}": value for key, value in {**found, **files}.items() if value is not None}


def channel(sysroot: Sysroot) -> PolledChannel:
    (found,) = Battery().channels(sysroot)
    assert isinstance(found, PolledChannel)
    return found


def test_a_discharging_battery_gives_the_machine_s_power(tree: Tree) -> None:
    sysroot = tree({**cell(), f"{SUPPLIES}/AC/type": "Mains", f"{SUPPLIES}/AC/online": 0})
    probe = Battery().probe(sysroot)
    assert probe.availability is Availability.AVAILABLE
    (rail,) = probe.rails
    assert (rail.key, rail.quantity, rail.provenance) == ("battery:BAT0", RailQuantity.POWER, Provenance.MEASURED)
    assert rail.resolution > 0
    assert rail.relative_error > 0
    assert rail.update_period_s > 0
    assert channel(sysroot).read() == pytest.approx(8.25)
    assert channel(sysroot).rail == rail


@pytest.mark.parametrize("status", ["Charging", "Not charging", "Full", "Unknown", ""])
def test_on_mains_it_is_absent_and_says_what_to_do(tree: Tree, status: str) -> None:
    sysroot = tree(cell(status=status))
    probe = Battery().probe(sysroot)
    assert probe.availability is Availability.ABSENT
    assert probe.remedy.startswith("unplug the charger")
    assert not probe.rails
    assert Battery().channels(sysroot) == ()


@pytest.mark.parametrize("current_ua", [1_200_000, -1_200_000])
def test_current_times_voltage_of_either_sign(tree: Tree, current_ua: int) -> None:
    sysroot = tree(cell(power_now=None, current_now=current_ua, voltage_now=12_000_000))
    assert channel(sysroot).read() == pytest.approx(14.4)


def test_a_negative_power_is_what_flows_out(tree: Tree) -> None:
    assert channel(tree(cell(power_now=-9_000_000))).read() == pytest.approx(9.0)


def test_a_gauge_without_power_is_read_by_its_energy(tree: Tree) -> None:
    sysroot = tree(cell(power_now=None, energy_now=40_000_000, energy_full=50_000_000))
    found = channel(sysroot)
    assert found.rail.quantity is RailQuantity.ENERGY
    assert found.read() == pytest.approx(36_000.0)
    sysroot.path(f"{SUPPLIES}/BAT0/energy_now").write_text("39990000\n")
    assert found.read() == pytest.approx(36_036.0)
    assert found.rail.resolution == pytest.approx(36.0)


def test_batteries_of_mice_and_supplies_of_other_kinds_do_not_count(tree: Tree) -> None:
    sysroot = tree(
        {
            **cell("hidpp_battery_0", scope="Device"),
            **cell("ups", type="UPS"),
            **cell("BAT1", present=0),
            f"{SUPPLIES}/ucsi-source-psy-USBC000:001/type": "USB",
        }
    )
    probe = Battery().probe(sysroot)
    assert (probe.availability, probe.remedy) == (Availability.ABSENT, "")


def test_two_batteries_are_one_rail_and_take_turns(tree: Tree) -> None:
    sysroot = tree({**cell("BAT1", status="Not charging", power_now=0), **cell("BAT0", power_now=7_000_000)})
    found = channel(sysroot)
    assert found.rail.name == "BAT0+BAT1"
    assert found.read() == pytest.approx(7.0)
    sysroot.path(f"{SUPPLIES}/BAT0/status").write_text("Not charging\n")
    sysroot.path(f"{SUPPLIES}/BAT1/status").write_text("Discharging\n")
    sysroot.path(f"{SUPPLIES}/BAT1/power_now").write_text("6500000\n")
    assert found.read() == pytest.approx(6.5)


def test_one_that_charges_the_other_is_no_machine_s_power(tree: Tree) -> None:
    sysroot = tree({**cell("BAT0"), **cell("BAT1", status="Charging")})
    assert Battery().probe(sysroot).availability is Availability.ABSENT


def test_plugging_in_fails_every_later_reading_of_the_session(tree: Tree) -> None:
    sysroot = tree(cell())
    found, status = channel(sysroot), sysroot.path(f"{SUPPLIES}/BAT0/status")
    assert found.session is not None
    with found.session():
        assert found.read() == pytest.approx(8.25)
        status.write_text("Charging\n")
        with pytest.raises(OSError, match="plugged in"):
            found.read()
        status.write_text("Discharging\n")
        with pytest.raises(OSError, match="plugged in"):
            found.read()
    with found.session():
        assert found.read() == pytest.approx(8.25)


def test_zero_while_it_discharges_is_no_reading(tree: Tree) -> None:
    sysroot = tree(cell(power_now=0))
    probe = Battery().probe(sysroot)
    assert probe.availability is Availability.BROKEN
    assert "0 W" in probe.detail
    assert probe.remedy


def test_only_root_may_read_it(tree: Tree, deny: Callable[[str], None]) -> None:
    sysroot = tree(cell())
    deny("/status")
    probe = Battery().probe(sysroot)
    assert probe.availability is Availability.DENIED
    assert "sudo" in probe.remedy
    assert Battery().channels(sysroot) == ()


def test_a_driver_that_knows_nothing_is_broken(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    sysroot, honest = tree(cell()), Sysroot.read

    def read(self: Sysroot, path: str) -> str:
        if path.endswith("/power_now"):
            raise OSError(errno.ENODEV, "No such device", path)
        return honest(self, path)

    monkeypatch.setattr(Sysroot, "read", read)
    probe = Battery().probe(sysroot)
    assert probe.availability is Availability.BROKEN
    assert "No such device" in probe.detail


def test_a_battery_that_vanishes_fails_and_does_not_raise_elsewhere(tree: Tree) -> None:
    sysroot = tree(cell())
    found = channel(sysroot)
    sysroot.path(f"{SUPPLIES}/BAT0/type").unlink()
    with pytest.raises(OSError, match="plugged in"):
        found.read()
    assert Battery().probe(sysroot).availability is Availability.ABSENT


def test_nothing_else_measured_makes_it_the_total(tree: Tree) -> None:
    total = choose_total(probe_all(tree(cell())), None)
    assert total is not None
    assert total.rails == ("battery:BAT0",)
    assert total.proposed


def test_a_simulated_battery_says_so(tree: Tree) -> None:
    sysroot = tree(cell())
    (sysroot.base / SIMULATION_MARKER).write_text("{}")
    assert channel(sysroot).rail.provenance is Provenance.SIMULATED


@given(st.text(max_size=30))
def test_any_status_is_one_of_three(text: str) -> None:
    assert parse_status(text) in Flow
    assert (parse_status(text) is Flow.OUT) == (text.partition("\n")[0].strip().lower() == "discharging")


def test_a_status_with_the_rest_of_a_longer_one_behind_it() -> None:
    assert parse_status("Charging\nng") is Flow.IN


@given(
    status=st.sampled_from(["Discharging", "Charging", "Full", "", "\0"]),
    power=st.one_of(st.none(), st.text("0123456789-. x", max_size=22)),
    current=st.one_of(st.none(), st.integers(-(10**19), 10**19)),
    voltage=st.one_of(st.none(), st.text(max_size=5), st.integers(0, 10**8)),
    energy=st.one_of(st.none(), st.integers(-5, 10**9)),
)
def test_whatever_the_files_hold_a_reading_is_positive_or_fails(
    tmp_path_factory: pytest.TempPathFactory,
    *,
    status: str,
    power: str | None,
    current: int | None,
    voltage: object,
    energy: int | None,
) -> None:
    sysroot = Sysroot(tmp_path_factory.mktemp("battery"))
    files = {"power_now": power, "current_now": current, "voltage_now": voltage, "energy_now": energy, "energy_full": 9}
    for path, text in cell(status=status, **files).items():
        file = Path(sysroot.path(path))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(f"{text}\n".encode("utf-8", "replace"))
    probe = Battery().probe(sysroot)
    assert (probe.availability is Availability.AVAILABLE) == bool(probe.rails)
    for found in Battery().channels(sysroot):
        assert isinstance(found, PolledChannel)
        with suppress(OSError):
            value = found.read()
            assert isinstance(value, float)
            assert found.rail.quantity is RailQuantity.ENERGY or value > 0
