"""What MLPerf Power would say: each rule with its number, its figure, and what would fix it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from powerlab.domain.power import RailQuantity
from powerlab.domain.quantity import Provenance
from powerlab.domain.workload import Scenario, Workload
from powerlab.measure.audit.audit import audit
from powerlab.measure.audit.mlperf import MLPERF_RULES, Ruled, Ruling, in_one_word
from recorded_run import POINT, rail, recorded_run

WALL = rail("wall", source="meter", relative_error=0.001, resolution=0.0001, update_period_s=0.5)
PTD = "the external meter at ptd://10.0.0.2:8888, which covers the whole system"


def ruled(**found) -> dict[str, Ruled]:
    recorded = recorded_run(**found)
    return {one.rule: one for one in audit(recorded.run, recorded.traces).mlperf}


def point(scenario: Scenario, bound_ms: float = 0.0, batch_size: int = 1):
    workload = Workload(model="resnet50", batch_size=batch_size, scenario=scenario, latency_bound_ms=bound_ms)
    return replace(POINT, workload=workload)


@pytest.fixture(scope="module")
def board() -> dict[str, Ruled]:
    return ruled()


def test_every_rule_is_asked_once_and_says_its_number(board):
    assert list(board) == [rule.name for rule in MLPERF_RULES]
    asks = " ".join(one.asks for one in board.values())
    for number in ("600 s", "1000 ms", "1%", "400 ms", "800 ms", "24576", "p90", "p99", "PTDaemon"):
        assert number in asks


def test_a_boards_own_sensor_is_rejected_with_what_would_mend_it(board):
    rejected = {name: one for name, one in board.items() if one.ruling is Ruling.REJECTED}
    assert set(rejected) == {"duration", "wall power", "analyser", "LoadGen"} | (
        {"uncertainty"} if "uncertainty" in rejected else set()
    )
    assert all(one.remedy for one in rejected.values())
    assert rejected["duration"].figure.startswith("5.")
    assert "--duration 600" in rejected["duration"].remedy
    assert "without the carrier board" in rejected["wall power"].figure
    assert in_one_word(tuple(board.values())) is Ruling.REJECTED


def test_what_passes_needs_no_mending(board):
    for name in ("same run", "measured", "sampling", "clocks", "phases", "gaps", "percentile", "offline"):
        assert board[name].ruling is Ruling.ACCEPTED, board[name]
        assert board[name].remedy == ""


def test_what_no_run_can_show_stays_open(board):
    assert board["accuracy"].ruling is Ruling.UNKNOWN


@pytest.mark.parametrize(
    ("rules", "word"),
    [
        ((Ruling.ACCEPTED, Ruling.ACCEPTED), Ruling.ACCEPTED),
        ((Ruling.ACCEPTED, Ruling.UNKNOWN), Ruling.UNKNOWN),
        ((Ruling.UNKNOWN, Ruling.REJECTED), Ruling.REJECTED),
    ],
)
def test_one_rejection_is_enough(rules, word):
    found = tuple(Ruled(rule=str(n), asks="", ruling=ruling, figure="") for n, ruling in enumerate(rules))
    assert in_one_word(found) is word


def test_ten_minutes_behind_an_analyser_leave_open_which_it_is():
    found = ruled(rails=(WALL,), scope=PTD, window_s=601.0, query_s=0.5, sample_every=50)
    assert found["duration"].ruling is Ruling.ACCEPTED
    assert found["uncertainty"].ruling is Ruling.ACCEPTED
    assert found["sampling"].ruling is Ruling.ACCEPTED
    assert found["analyser"].ruling is Ruling.UNKNOWN
    assert found["wall power"].ruling is Ruling.UNKNOWN
    assert {one.rule for one in found.values() if one.ruling is Ruling.REJECTED} == {"LoadGen"}


def test_a_meter_that_is_not_behind_ptdaemon_is_no_accepted_analyser():
    found = ruled(rails=(WALL,), scope="the external meter at tcp://10.0.0.2:1, which covers the board")
    assert found["analyser"].ruling is Ruling.REJECTED


def test_simulated_power_is_rejected():
    simulated = rail("VDD_IN", provenance=Provenance.SIMULATED)
    found = ruled(rails=(simulated,))
    assert (found["measured"].ruling, found["measured"].figure) == (Ruling.REJECTED, "power is simulated")


def test_a_slow_sensor_is_rejected():
    found = ruled(rails=(rail("VDD_IN", update_period_s=2.0),), window_s=50.0)
    assert found["sampling"].ruling is Ruling.REJECTED
    assert "2000 ms" in found["sampling"].figure


def test_an_uncertain_meter_is_rejected():
    found = ruled(rails=(rail("VDD_IN", relative_error=0.05),))
    assert found["uncertainty"].ruling is Ruling.REJECTED
    assert "W measured" in found["uncertainty"].figure


def test_a_run_without_power_is_rejected_wherever_power_is_asked_for():
    found = ruled(power_failure="the sensor went up in smoke")
    for name in ("same run", "measured", "sampling", "uncertainty", "phases", "gaps"):
        assert found[name].ruling is Ruling.REJECTED, name
    assert "smoke" in found["gaps"].figure


def test_a_clock_that_was_set_and_a_mode_that_did_not_hold_are_rejected():
    found = ruled(clock_jump_s=-0.7, drift="somebody changed MAXN")
    assert found["clocks"].ruling is Ruling.REJECTED
    assert "0.7 s" in found["clocks"].figure
    assert found["power management"].ruling is Ruling.REJECTED
    assert ruled(clock_jump_s=0.1)["clocks"].ruling is Ruling.ACCEPTED


@pytest.mark.parametrize(
    ("scenario", "queries", "ruling"),
    [
        (Scenario.SINGLE_STREAM, 63, Ruling.REJECTED),
        (Scenario.SINGLE_STREAM, 64, Ruling.ACCEPTED),
        (Scenario.MULTI_STREAM, 661, Ruling.REJECTED),
        (Scenario.MULTI_STREAM, 662, Ruling.ACCEPTED),
    ],
)
def test_a_percentile_wants_as_many_queries_as_early_stopping_does(scenario, queries, ruling):
    found = ruled(point=point(scenario), window_s=queries * 0.02, rails=(rail("N", RailQuantity.ENERGY),))
    assert found["percentile"].ruling is ruling
    assert f"of {queries} queries" in found["percentile"].figure


@pytest.mark.parametrize(("bound_ms", "ruling"), [(30.0, Ruling.ACCEPTED), (15.0, Ruling.REJECTED)])
def test_a_server_must_hold_its_bound(bound_ms, ruling):
    found = ruled(point=point(Scenario.SERVER, bound_ms), window_s=14.0)
    assert found["percentile"].ruling is ruling
    assert f"bound {bound_ms:g} ms" in found["percentile"].figure


@pytest.mark.parametrize(("batch_size", "ruling"), [(98, Ruling.REJECTED), (99, Ruling.ACCEPTED)])
def test_offline_wants_enough_images(batch_size, ruling):
    found = ruled(point=point(Scenario.OFFLINE, batch_size=batch_size), window_s=5.0, query_s=0.02)
    assert found["offline"].ruling is ruling
    assert f"{250 * batch_size} images" in found["offline"].figure
    assert found["percentile"].ruling is Ruling.ACCEPTED


def test_every_rule_is_in_the_method():
    page = (Path(__file__).parents[3] / "docs" / "method.md").read_text(encoding="utf-8")
    assert [rule.name for rule in MLPERF_RULES if f"\n| {rule.name} |" not in page] == []
