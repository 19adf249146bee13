"""Calibrations on disk: whole or not at all, and used for nothing but what they were made for."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from powerlab.domain.device import Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Rail, RailQuantity
from powerlab.domain.quantity import Provenance
from powerlab.measure.lag.calibration import Calibration, fitting, keep, kept, place, updated, with_lags
from powerlab.measure.lag.edges import RailLag
from powerlab.measure.recording.rails import Meter
from powerlab.state_dir import VARIABLE
from powerlab.sysroot import Sysroot

DEVICE = Device(
    name="bench",
    board="nvidia-grace",
    architecture="aarch64",
    cpu_model="Neoverse-V2",
    core_count=72,
    memory_bytes=1 << 38,
    kernel="6.8.0-1013-nvidia-64k",
    simulated=False,
)
RAIL = Rail(
    source="hwmon",
    name="Module Power Socket 0",
    quantity=RailQuantity.POWER,
    resolution=0.001,
    relative_error=0.1,
    update_period_s=0.05,
    provenance=Provenance.MEASURED,
)
LAG = RailLag(rail=RAIL, lag_s=0.048, lag_error_s=0.003, rise_s=0.06, update_period_s=0.05, step_w=220.0, edges=16)


def calibration(*lags: RailLag, **changes: object) -> Calibration:
    fields: dict[str, object] = {
        "board": DEVICE.board,
        "kernel": DEVICE.kernel,
        "simulated": DEVICE.simulated,
        "made_at": "2026-11-21T18:00:00+00:00",
        "rails": lags or (LAG,),
        **changes,
    }
    return Calibration(**fields)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "calibrations" / "nvidia-grace.json"


def test_what_was_kept_is_what_was_found(path):
    blind = RailLag(rail=replace(RAIL, name="IO"), problem="hwmon:IO does not follow the load.")
    keep(calibration(LAG, blind), path)
    assert kept(path) == calibration(LAG, blind)


def test_a_newer_one_takes_the_olders_place_and_leaves_nothing_beside_it(path):
    keep(calibration(), path)
    keep(calibration(replace(LAG, lag_s=0.06)), path)
    assert kept(path).rails[0].lag_s == 0.06
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_without_a_file_there_is_none(path):
    assert kept(path) is None


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"board": 1}', b"\xff\xfe", b"null"])
def test_a_damaged_one_is_a_sentence_that_says_what_to_do(path, text):
    path.parent.mkdir(parents=True)
    path.write_bytes(text)
    with pytest.raises(PowerlabError, match=r"is damaged .*`powerlab calibrate`"):
        kept(path)


def test_half_a_file_never_takes_the_place_of_a_whole_one(path, monkeypatch):
    keep(calibration(), path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PowerlabError, match=r"cannot be written .*No space left.*POWERLAB_STATE_DIR"):
        keep(calibration(replace(LAG, lag_s=0.9)), path)
    assert kept(path) == calibration()
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_place_that_is_no_folder_is_a_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(PowerlabError, match="cannot be written"):
        keep(calibration(), tmp_path / "file" / "calibrations" / "x.json")


def test_one_that_cannot_be_read_is_a_sentence(tmp_path):
    with pytest.raises(PowerlabError, match="cannot be read"):
        kept(tmp_path)


def test_it_fits_the_board_kernel_and_rails_that_it_was_made_for():
    assert fitting(calibration(), DEVICE, [RAIL]) == {RAIL.key: LAG}
    assert fitting(None, DEVICE, [RAIL]) == {}


@pytest.mark.parametrize("changed", [{"kernel": "6.9.0"}, {"board": "generic"}, {"simulated": True}, {"version": 2}])
def test_one_of_another_board_kernel_or_version_is_not_used(changed):
    assert fitting(calibration(**changed), DEVICE, [RAIL]) == {}


@pytest.mark.parametrize(
    "changed",
    [
        {"update_period_s": 0.1},
        {"resolution": 0.5},
        {"relative_error": 0.05},
        {"offset": 0.1},
        {"quantity": RailQuantity.ENERGY},
        {"provenance": Provenance.SIMULATED},
        {"name": "Module Power Socket 1"},
    ],
)
def test_a_rail_that_is_described_otherwise_has_no_lag(changed):
    assert fitting(calibration(), DEVICE, [replace(RAIL, **changed)]) == {}


def test_a_rail_without_a_lag_gets_none():
    blind = RailLag(rail=RAIL, problem="it does not follow the load.")
    assert fitting(calibration(blind), DEVICE, [RAIL]) == {}


def test_rails_get_their_lags_and_others_stay_as_they_are():
    other = replace(RAIL, name="CPU Power Socket 0")
    found = with_lags((RAIL, other), {RAIL.key: LAG})
    assert found == (replace(RAIL, lag_s=0.048, lag_error_s=0.003), other)


@pytest.mark.parametrize(("now_s", "used"), [(0.05, True), (0.07, True), (0.2, False)])
def test_a_sensor_that_has_become_much_slower_is_another_one(now_s, used):
    (found,) = with_lags((replace(RAIL, update_period_s=now_s),), {RAIL.key: LAG})
    assert (found.lag_error_s > 0) == used
    assert found.update_period_s == now_s


def test_the_period_that_the_load_showed_counts_where_nobody_stated_one():
    silent = replace(RAIL, update_period_s=0.0)
    lag = replace(LAG, rail=silent)
    (found,) = with_lags((replace(RAIL, update_period_s=0.05),), {RAIL.key: lag})
    assert found.lag_s == LAG.lag_s


def test_a_window_is_recorded_for_long_enough_to_look_behind_the_lag(tmp_path):
    def margin_s(rail: Rail) -> float:
        return Meter(sysroot=Sysroot(tmp_path), total=None, rails=(rail,), sample_period_s=0.01).margin_s

    assert margin_s(RAIL) == pytest.approx(0.1), "two update periods, as without a calibration"
    assert margin_s(replace(RAIL, lag_s=0.5, lag_error_s=0.02)) >= 0.5 + 0.05


def test_the_machine_keeps_its_own_and_simulated_boards_share_one_a_name(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "state"))
    own = place(DEVICE, Sysroot())
    assert own == tmp_path / "state/calibrations/nvidia-grace.json"
    simulated = replace(DEVICE, simulated=True)
    trees = {place(simulated, Sysroot(tmp_path / name)) for name in ("one", "two")}
    assert trees == {tmp_path / "state/calibrations/simulated-nvidia-grace.json"}
    assert own not in trees
    assert place(DEVICE, Sysroot(tmp_path / "mounted")).is_relative_to(tmp_path / "mounted")


def test_a_boards_name_leads_to_no_other_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    found = place(replace(DEVICE, board="../../etc/x y"), Sysroot())
    assert found.parent == tmp_path / "calibrations"


def test_the_file_is_readable_json_with_units_in_its_names(path):
    keep(calibration(), path)
    rail = msgspec.json.decode(path.read_bytes())["rails"][0]
    assert rail["lag_s"] == 0.048
    assert rail["rail"]["name"] == RAIL.name


COUNTER = replace(RAIL, source="nvml", name="GPU0", quantity=RailQuantity.ENERGY, update_period_s=0.1)


def counted(window_s: float | None, error_s: float = 0.005, rail: Rail = COUNTER) -> RailLag:
    return replace(LAG, rail=rail, update_period_s=0.1, averaging_s=window_s, averaging_error_s=error_s)


@pytest.mark.parametrize(
    ("found", "share"),
    [
        (counted(0.025), 0.25),
        (counted(0.1), 1.0),
        (counted(None), 1.0),
        (counted(0.025, error_s=0.03), 1.0),
        (counted(0.025, rail=replace(COUNTER, update_period_s=0.01)), 1.0),
        (counted(0.05, rail=replace(COUNTER, seen_share=0.25)), 0.25),
        (counted(0.025, rail=replace(COUNTER, quantity=RailQuantity.POWER)), 1.0),
    ],
)
def test_a_counter_that_clearly_adds_up_a_part_is_taken_to_look_part_of_the_time(found: RailLag, share: float) -> None:
    (rail,) = with_lags([found.rail], {found.rail.key: found})
    assert rail.seen_share == pytest.approx(share)


def test_calibrations_on_cores_and_cards_add_up() -> None:
    of_cores = calibration(LAG, replace(counted(None), lag_s=None))
    of_cards = calibration(replace(LAG, lag_s=None, problem="does not follow the load."), counted(0.025))
    both = {one.rail.key: one for one in updated(of_cards, of_cores).rails}
    assert both[RAIL.key] == LAG
    assert both[COUNTER.key].averaging_s == 0.025
    assert updated(of_cards, None) == of_cards
    assert updated(of_cards, calibration(LAG, kernel="other")) == of_cards
