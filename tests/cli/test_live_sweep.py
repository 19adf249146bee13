"""What ``powerlab profile`` shows while it measures: a table of the points so far, a bar each, and the progress."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from powerlab.analysis.summary import summarise
from powerlab.cli.output.live_sweep import LiveSweep, bar, so_far
from powerlab.cli.output.sweep_table import sweep_table
from powerlab.domain.run import Run
from tests.dashboards import plausible

PLAN = plausible.plan(modes=("MODE_15W",), batch_sizes=(1,), threads=(1, 2, 4))
RUNS = plausible.runs(plausible.xavier("nano-1"), PLAN, "sweep")


def drawn(whole: RenderableType, width: int) -> list[str]:
    console = Console(file=StringIO(), width=width, markup=False, emoji=False)
    console.print(whole)
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [80, 120])
def test_points_are_sorted_by_what_their_bars_show(width):
    shown = drawn(so_far(summarise(RUNS), width, 20), width)
    assert max(map(len, shown)) <= width
    assert " ".join(shown[:2]).count("simulated") == (4 if width == 120 else 3), "each column says where it is from"
    rows = [line for line in shown if "thread" in line]
    assert len(rows) == 3
    lengths = [line.count("█") for line in rows]
    assert lengths == sorted(lengths, reverse=True)
    assert all("3/3" in line for line in rows)


def test_points_without_room_are_counted():
    assert drawn(so_far(summarise(RUNS), 80, 1), 80)[-1] == "… and 2 more points"


def test_without_power_bars_show_throughput_and_no_watt_is_made_up():
    bare = [replace(run, metrics=tuple(one for one in run.metrics if "_w" not in one.name)) for run in RUNS]
    told = " ".join(drawn(so_far(summarise(bare), 120, 20), 120))
    assert "img/s/W" not in told
    assert " W " not in told
    assert "█" in told


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.integers(1, 40))
def test_a_bar_is_as_long_as_its_share(value, more, width):
    most = value + more
    length = len(bar(value, most, width))
    assert length <= width
    if most > 0:
        assert abs(length - width * value / most) <= 1


def shown_by(terminal: bool, runs: list[Run]) -> str:
    console = Console(file=StringIO(), force_terminal=terminal, width=100, height=30, color_system=None)
    with LiveSweep(console) as live:
        live.progress.add_task("measuring", total=len(runs))
        live.print("9 runs, about 1 min")
        live.add(runs)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_only_a_terminal_shows_it_and_both_say_what_is_printed():
    onscreen, written = shown_by(True, RUNS), shown_by(False, RUNS)
    assert "9 runs, about 1 min" in onscreen
    assert "4 threads" in onscreen
    assert written == "9 runs, about 1 min\n"


def test_a_table_without_room_leaves_percentiles_out_and_never_cuts_a_figure():
    narrow = drawn(sweep_table(summarise(RUNS), 76), 76)
    assert "p90 ms" not in " ".join(narrow[:4])
    assert "p99 ms" in " ".join(narrow[:4])
    assert "wider terminal shows p90 ms" in " ".join(narrow)
    assert sum("3/3" in line for line in narrow) == 3
    assert "wider" not in " ".join(drawn(sweep_table(summarise(RUNS), 140), 140))


def test_a_long_name_of_a_mode_goes_on_below_and_hides_no_percentile():
    long = [replace(run, point=replace(run.point, mode="cores=3+cpu-max=883200kHz")) for run in RUNS]
    told = drawn(sweep_table(summarise(long), 90), 90)
    assert "p90 ms" in " ".join(told[:4])
    assert sum("3/3" in line for line in told) == 3
