"""Recorded logs of tegrastats: energy with its interval, clocks that jump, and the command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from powerlab import cli
from powerlab.domain.errors import PowerlabError
from powerlab.measure.energy.tegrastats_log import Summary, summarise_log

START = datetime(2026, 4, 27, 14, 59, 41)


def line(power_mw: int, date: datetime | None = None) -> str:
    head = "" if date is None else f"{date:%m-%d-%Y %H:%M:%S} "
    return f"{head}RAM 775/7620MB (lfb 3x4MB) GR3D_FREQ 0% tj@49C VDD_IN {power_mw}mW/4777mW VDD_SOC 1428mW/1428mW \n"


def log(powers_mw: Sequence[int], interval_s: float, start: datetime = START) -> list[str]:
    """Lines as the board prints them: dates are cut to whole seconds."""
    return [line(power, start + timedelta(seconds=index * interval_s)) for index, power in enumerate(powers_mw)]


def only_part(summary: Summary) -> tuple[float, bool]:
    (part,) = summary.parts
    return part.interval_s, part.dated


def test_power_and_energy_of_a_steady_log() -> None:
    summary = summarise_log(log([4000] * 61, 1.0), None)
    assert only_part(summary) == (1.0, True)
    found = summary.rails["VDD_IN"]
    assert (found.mean_w, found.min_w, found.max_w, found.readings) == (4.0, 4.0, 4.0, 61)
    assert found.energy_j == pytest.approx(240.0)
    assert found.low_j < 240.0 < found.high_j
    assert not summary.notes


def test_only_the_present_power_counts() -> None:
    assert summarise_log([line(5000), line(5000)], 1.0).rails["VDD_IN"].mean_w == 5.0


def test_lines_without_dates_need_the_interval() -> None:
    lines = [line(4000)] * 11
    with pytest.raises(PowerlabError, match="--interval-ms"):
        summarise_log(lines, None)
    summary = summarise_log(lines, 0.1)
    assert only_part(summary) == (0.1, False)
    assert summary.rails["VDD_IN"].energy_j == pytest.approx(4.0)


def test_dates_within_one_second_tell_nothing() -> None:
    with pytest.raises(PowerlabError, match="--interval-ms"):
        summarise_log(log([4000] * 5, 0.1), None)


def test_a_short_log_is_timed_by_the_stated_interval_and_a_long_one_by_its_dates() -> None:
    assert only_part(summarise_log(log([4000] * 21, 0.1), 0.1)) == (0.1, False)
    interval_s, dated = only_part(summarise_log(log([4000] * 601, 0.1), 0.1))
    assert dated
    assert interval_s == pytest.approx(0.1, rel=0.02)


def test_an_interval_that_the_dates_belie_is_said() -> None:
    summary = summarise_log(log([4000] * 61, 2.0), 1.0)
    assert summary.rails["VDD_IN"].energy_j == pytest.approx(480.0)
    (note,) = summary.notes
    assert "2 s apart, not 1 s" in note


@pytest.mark.parametrize("jump_s", [-3600, -5, 60, 86400])
def test_a_jump_of_the_clock_splits_the_log_and_is_said(jump_s: int) -> None:
    later = START + timedelta(seconds=30 + jump_s)
    summary = summarise_log([*log([4000] * 31, 1.0), *log([8000] * 31, 1.0, later)], None)
    assert [len(part.lines) for part in summary.parts] == [31, 31]
    assert summary.rails["VDD_IN"].energy_j == pytest.approx(4 * 30 + 8 * 30), "nothing between the parts is counted"
    (note,) = summary.notes
    assert f"{jump_s:+d} s" in note


def test_a_second_more_or_less_is_no_jump() -> None:
    seconds = [0, 1, 2, 2, 4, 5, 6, 7, 9, 10, 11]
    lines = [line(4000, START + timedelta(seconds=second)) for second in seconds]
    summary = summarise_log(lines, 1.0)
    assert len(summary.parts) == 1
    assert not summary.notes


def test_where_only_some_lines_have_dates_none_is_used() -> None:
    summary = summarise_log([*log([4000] * 20, 1.0), line(4000)], 1.0)
    assert only_part(summary) == (1.0, False)
    assert "20 of 21" in summary.notes[0]


def test_a_part_of_one_line_has_power_and_no_energy() -> None:
    lines = [*log([4000] * 31, 1.0), line(9000, START - timedelta(hours=1))]
    found = summarise_log(lines, None).rails["VDD_IN"]
    assert found.max_w == 9.0
    assert found.energy_j == pytest.approx(120.0)


def test_other_lines_are_counted_and_skipped() -> None:
    summary = summarise_log(["warming up\n", "\n", *log([4000] * 31, 1.0), "^C\n"], None)
    assert summary.skipped == 2
    assert summary.rails["VDD_IN"].readings == 31


def test_a_log_without_rails_says_how_to_record_one() -> None:
    with pytest.raises(PowerlabError, match="sudo tegrastats"):
        summarise_log(["RAM 775/7620MB (lfb 3x4MB)\n"] * 5, 1.0)


def test_modules_fed_with_5_volts_step_finer() -> None:
    coarse = summarise_log([line(4000)] * 61, 1.0).rails["VDD_IN"]
    fine = summarise_log([line(4000).replace("VDD_SOC", "VDD_CPU_GPU_CV")] * 61, 1.0).rails["VDD_IN"]
    assert fine.high_j - fine.low_j < coarse.high_j - coarse.low_j


@example([500] * 28 + [1266, 2412, 5261, 7709, 6977, 5966, 11173, 9000, 4000, 2000, 900, 500], 0.05, 0.0, False)
@given(
    st.lists(st.integers(500, 60_000), min_size=15, max_size=200),
    st.floats(0.05, 5.0),
    st.floats(-0.015, 0.015),
    st.booleans(),
)
def test_the_true_energy_lies_in_the_interval(
    powers_mw: list[int], interval_s: float, gain: float, stated: bool
) -> None:
    """A power that goes straight from reading to reading, a sensor that is off by its stated error, dates cut."""
    read_mw = [round(power * (1 + gain)) for power in powers_mw]
    true_j = float(np.trapezoid(powers_mw, dx=interval_s)) * 1e-3
    try:
        found = summarise_log(log(read_mw, interval_s), interval_s if stated else None).rails["VDD_IN"]
    except PowerlabError:
        assert not stated
        assert interval_s * len(powers_mw) < 2
        return
    # 1.96 standard deviations of a rectangle lie a little outside it: the bound itself is the interval's end.
    assert found.low_j - 0.02 * true_j <= true_j <= found.high_j + 0.02 * true_j


@given(st.lists(st.text(max_size=60) | st.sampled_from([line(4000), line(5000, START)]), max_size=12))
def test_any_log_is_a_summary_or_a_sentence(lines: list[str]) -> None:
    try:
        summary = summarise_log(lines, None)
    except PowerlabError:
        return
    assert all(found.low_j <= found.energy_j <= found.high_j for found in summary.rails.values())


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    file = tmp_path / "run.log"
    file.write_text("".join(log([4000] * 61, 1.0)))
    return file


def test_the_command_prints_a_table(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tegrastats", str(recorded)]) == 0
    printed = capsys.readouterr().out
    assert "61 lines over 60 s, interval 1 s (from the dates)" in printed
    row = next(row for row in printed.splitlines() if row.startswith("VDD_IN"))
    assert row.split()[1:4] == ["4.000", "4.000", "4.000"]
    assert "240" in row
    assert "±" in row


def test_the_command_prints_json(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tegrastats", str(recorded), "--interval-ms", "1000", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["rails"]) == ["VDD_IN", "VDD_SOC"]
    energy_j = found["rails"]["VDD_IN"]["energy_j"]
    assert energy_j["low"] < energy_j["value"] < energy_j["high"]
    assert found["parts"][0]["first"] == "2026-04-27T14:59:41"
    assert (found["notes"], found["lines_skipped"]) == ([], 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.log"], "cannot read nowhere.log"),
        (["run.log", "--interval-ms", "0"], "not a time"),
        (["run.log", "--interval-ms", "soon"], "--interval-ms"),
        ([".", "--interval-ms", "1"], "cannot read"),
        (["other.log"], "no line has a rail"),
    ],
)
def test_what_cannot_be_carried_out_is_one_sentence(
    recorded: Path,
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(recorded.parent)
    Path("other.log").write_bytes(b"\xff\xfe\x00 not a log\n")
    assert cli.main(["tegrastats", *arguments]) == cli.EXIT_USAGE
    said = capsys.readouterr().err.strip()
    assert words in said
    assert "\n" not in said
