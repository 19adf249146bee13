"""``powerlab top``: what it shows of a reading, on a simulated board, and in a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from contextlib import ExitStack
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from powerlab.cli import main
from powerlab.cli.commands.top.layout import layout, sparkline
from powerlab.cli.commands.top.once import document
from powerlab.cli.commands.top.screen import View, fitted, page
from powerlab.domain.power import Rail, RailQuantity
from powerlab.domain.quantity import Provenance
from powerlab.power.base import FileChannel
from powerlab.readings.clocks import Clock
from powerlab.readings.minute import Minute, Recent
from powerlab.readings.rails import LiveRail
from powerlab.readings.reading import RailReading, Reading, Temperature, Total
from powerlab.state_dir import VARIABLE
from powerlab.sysroot import Sysroot

BOARD = "jetson-agx-xavier"
SECOND_NS = 1_000_000_000

READING = Reading(
    device="bench-3",
    board=BOARD,
    mode="MODE_15W",
    job="process 77 has set MODE_15W",
    uptime_s=90_061.0,
    rails=(
        RailReading(rail="ina3221:CPU", provenance=Provenance.MEASURED, recent=Recent(2.0, (1.0, 4.0, 2.0))),
        RailReading(rail="ina3221:GPU", provenance=Provenance.MEASURED, recent=Recent(9.5, (9.5,))),
        RailReading(
            rail="rapl:package-0", provenance=Provenance.MEASURED, recent=Recent(None), problem="denied: use sudo"
        ),
    ),
    total=Total(recent=Recent(11.5, (11.5,)), provenance=Provenance.MEASURED, scope="module rails", proposed=False),
    clocks=(Clock(name="CPU 0-3", clock_mhz=1190.4, limit_mhz=2265.6, governor="schedutil"),),
    temperatures=(Temperature(name="CPU-therm", celsius=51.5, limit_c=86.0),),
    busy={0: 0.25, 1: 1.0},
    cost_s=0.002,
)


def drawn(reading: Reading, width: int = 80, *, by_name: bool = False) -> list[str]:
    console = Console(file=StringIO(), width=width, markup=False, emoji=False)
    console.print(layout(reading, width, by_name=by_name))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


def line_of(lines: list[str], start: str) -> list[str]:
    return next(line for line in lines if line.startswith(start)).split()


@pytest.mark.parametrize("width", [80, 120])
def test_a_screen_holds_every_figure_within_its_width(width):
    lines = drawn(READING, width)
    assert max(map(len, lines)) <= width
    assert lines[0].split() == ["bench-3", BOARD, "mode", "MODE_15W", "up", "1", "d", "1:01"]
    assert "process 77 has set MODE_15W" in lines
    assert line_of(lines, "ina3221:CPU") == ["ina3221:CPU", "2.00", "2.33", "4.00", "▃█▅", "measured"]
    assert line_of(lines, "total") == ["total", "11.50", "11.50", "11.50", "█", "measured"]
    assert line_of(lines, "CPU 0-3") == ["CPU", "0-3", "1190", "2266", "schedutil"]
    assert "CPU-therm 51.5 of 86" in "\n".join(lines)
    assert " 25%" in "\n".join(lines)


def test_a_rail_that_cannot_be_read_says_so_and_is_never_0_w():
    lines = drawn(READING)
    assert line_of(lines, "rapl:package-0 ") == ["rapl:package-0", "unread", "–", "–", "measured"]
    assert "rapl:package-0: denied: use sudo" in lines
    assert document(READING)["rails"][2]["power_w"] is None


def test_a_machine_without_sensors_says_what_is_missing():
    bare = replace(READING, rails=(), total=None, clocks=(), temperatures=(), busy={}, uptime_s=None)
    told = "\n".join(drawn(bare))
    assert "No rail can be read for power" in told
    assert "There is no total" in told
    assert "0.00" not in told


def test_rails_are_sorted_by_watts_or_by_name():
    def order(*, by_name: bool) -> list[str]:
        lines = drawn(READING, by_name=by_name)
        return [line.split()[0] for line in lines if line.startswith(("ina3221:", "rapl:package-0 "))]

    assert order(by_name=False) == ["ina3221:GPU", "ina3221:CPU", "rapl:package-0"]
    assert order(by_name=True) == ["ina3221:CPU", "ina3221:GPU", "rapl:package-0"]


@given(st.lists(st.floats(0, 1e6), max_size=200), st.integers(1, 40))
def test_a_sparkline_fits_and_keeps_the_peak(values, width):
    drawn_bars = sparkline(values, width)
    assert len(drawn_bars) == min(width, len(values))
    if any(value > 0 for value in values):
        assert "█" in drawn_bars


def test_a_minute_forgets_what_is_older():
    minute = Minute()
    minute.add(0, 50.0)
    minute.add(30 * SECOND_NS, 1.0)
    recent = minute.add(61 * SECOND_NS, None)
    assert (recent.power_w, recent.mean_w, recent.peak_w) == (None, 1.0, 1.0)


def _live(tmp_path: Path, quantity: RailQuantity, stack: ExitStack) -> LiveRail:
    rail = Rail(
        source="test",
        name="rail",
        quantity=quantity,
        resolution=0.0,
        relative_error=0.0,
        update_period_s=0.0,
        provenance=Provenance.MEASURED,
    )
    channel = FileChannel(rail=rail, paths=("/value",), scale=1e-3, wraps_at=1_000_000, invalid=-1)
    return LiveRail(Sysroot(tmp_path), channel, stack)


@pytest.mark.parametrize("text", ["-1", "", "no number"])
def test_a_reading_that_is_none_is_no_power_until_the_next_one(tmp_path, text):
    file = tmp_path / "value"
    file.write_text("2500")
    with ExitStack() as stack:
        live = _live(tmp_path, RailQuantity.POWER, stack)
        assert live.power_w() == pytest.approx(2.5)
        file.write_text(text)
        assert live.power_w() is None
        file.write_text("0")
        assert live.power_w() == 0.0


def test_a_counter_gives_power_across_its_end_and_none_at_first(tmp_path):
    file = tmp_path / "value"
    file.write_text("999900")
    with ExitStack() as stack:
        live = _live(tmp_path, RailQuantity.ENERGY, stack)
        began_s = time.monotonic()
        assert live.power_w() is None
        time.sleep(0.05)
        file.write_text("100")
        power_w = live.power_w()
        assert power_w is not None
        assert 0 < power_w <= 0.2 / 0.05
        assert power_w >= 0.2 / (time.monotonic() - began_s)


def test_keys_do_what_the_help_says():
    view = View(interval_s=1.0, shortest_s=0.1, longest_s=60.0)
    for key in "p+shx":
        view.press(key)
    assert (view.paused, view.interval_s, view.by_name, view.help, view.quit) == (True, 0.5, True, True, False)
    for key in "+" * 10:
        view.press(key)
    assert view.interval_s == 0.1
    for key in "-" * 20 + "q":
        view.press(key)
    assert (view.interval_s, view.quit) == (60.0, True)


def test_the_help_takes_the_place_of_the_figures():
    console = Console(width=80, markup=False, emoji=False)
    view = View(interval_s=1.0, shortest_s=0.1, longest_s=60.0, help=True)
    with console.capture() as captured:
        console.print(page(READING, view, 80))
    assert "sort rails by watts, by name" in captured.get()
    assert "ina3221" not in captured.get()


def test_a_low_terminal_says_how_much_it_hides():
    console = Console(width=80, height=8, markup=False, emoji=False)
    view = View(interval_s=1.0, shortest_s=0.1, longest_s=60.0)
    with console.capture() as captured:
        console.print(fitted(console, page(READING, view, 80)))
    lines = captured.get().splitlines()
    hidden = len(console.render_lines(page(READING, view, 80))) - 7
    assert len(lines) == 8
    assert lines[-1] == f"… and {hidden} more lines; a taller terminal shows them."


def test_json_of_a_simulated_board(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert main(["top", "--board", BOARD, "--json", "--interval", "1s"]) == 0
    found = json.loads(capsys.readouterr().out)
    parts = [rail["power_w"] for rail in found["rails"]]
    assert found["mode"] == "MAXN"
    assert found["total"]["power_w"] == pytest.approx(sum(parts))
    assert {rail["provenance"] for rail in found["rails"]} == {"simulated"}
    assert {one["name"] for one in found["clocks"]} >= {"CPU 0-1", "GPU", "memory"}
    assert all(one["limit_c"] > one["celsius"] for one in found["temperatures"])
    assert len(found["busy"]) == 8


def test_a_counter_becomes_power(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert main(["top", "--board", "laptop", "--once", "--interval", "0.3"]) == 0
    told = capsys.readouterr().out
    row = line_of(told.splitlines(), "rapl:package-0")
    assert float(row[1]) > 0
    assert row[-1] == "simulated"
    assert "This reading took" in told


@pytest.mark.parametrize("interval", ["0", "2h", "61s", "-1s", "nan", "1ms"])
def test_an_impossible_interval_is_told_in_a_sentence(interval, capsys):
    assert main(["top", f"--interval={interval}"]) == 2
    assert "is not a time from 100ms to 60s" in capsys.readouterr().err


@pytest.mark.parametrize("way", ["q", "Ctrl-C"])
def test_the_terminal_is_as_before_after(way, tmp_path):
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    command = [sys.executable, "-m", "powerlab.cli", "top", "--interval", "200ms", "--board", BOARD]
    environment = os.environ | {VARIABLE: str(tmp_path), "TERM": "xterm"}
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment) as process:
        shown = _until(master, b"ina3221:SYS5V")
        assert termios.tcgetattr(slave)[3] & termios.ECHO == 0
        if way == "q":
            os.write(master, b"q")
        else:
            process.send_signal(signal.SIGINT)
        shown += _until(master, b"\x1b[?1049l")
        assert process.wait(timeout=120) == 0
    assert b"Traceback" not in shown
    assert termios.tcgetattr(slave) == before
    os.close(master)
    os.close(slave)


def _until(terminal: int, wanted: bytes) -> bytes:
    shown, end_s = b"", time.monotonic() + 30
    while wanted not in shown:
        assert time.monotonic() < end_s, shown
        if select.select([terminal], [], [], 0.1)[0]:
            shown += os.read(terminal, 65536)
    return shown
