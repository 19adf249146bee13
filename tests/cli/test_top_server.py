"""``powerlab top --from URL`` against a server: one answer, a screen, and a server that goes away and comes back."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from free_port import free_port
from fresh_store import fresh_store
from powerlab.cli import main
from powerlab.domain.phase import RunPhase
from powerlab.domain.quantity import Provenance
from powerlab.protocol.readings import (
    ClockNow,
    DeviceReading,
    PhaseReport,
    RailPower,
    ReadingsUpload,
    Snapshot,
    TemperatureNow,
    TotalPower,
)
from powerlab.store.writes.readings import store_readings
from powerlab_api.app import create_app
from served import served
from tests.dashboards import plausible
from tests.dashboards.conftest import START, Shelf

PLAN = plausible.plan(models=("mobilenetv2",))
SNAPSHOT = Snapshot(
    mode="MODE_15W",
    total=TotalPower(power_w=12.5, provenance=Provenance.SIMULATED, scope="the module"),
    rails=(RailPower(rail="ina3221:VDD", power_w=12.5, provenance=Provenance.SIMULATED),),
    clocks=(ClockNow(name="CPU 0-3", clock_mhz=1190.0),),
    temperatures=(TemperatureNow(name="CPU-therm", celsius=51.5),),
)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    made = Shelf(fresh_store(tmp_path_factory.mktemp("top") / "powerlab.db", clock=lambda: START))
    running = made.add_sweep(plausible.xavier("busy-1"), PLAN, stored=1)
    phase = PhaseReport(sweep_id=running.id, phase=RunPhase.WARM_UP, point=PLAN.points()[0], run_index=2, run_count=36)
    upload = ReadingsUpload(readings=(DeviceReading(age_s=2.0, seen=SNAPSHOT),), phase=phase)
    with made.store.write() as session:
        store_readings(session, running.device_id, upload, START)
    yield made
    made.store.close()


def test_a_server_is_asked_once_for_a_table_or_json(shelf, capsys, monkeypatch):
    with served(create_app(shelf.store)) as url:
        assert main(["top", "--from", url]) == 0
        table = capsys.readouterr().out.splitlines()
        monkeypatch.setenv("POWERLAB_SERVER", url)
        assert main(["top", "--json"]) == 0
    assert re.match(r"busy-1 busy warm-up 1/36 mobilenetv2, .* 12\.50 52 1190 MODE_15W 0 2 s", row(table, "busy-1"))
    found = json.loads(capsys.readouterr().out)
    (reading,) = found["readings"].values()
    assert (reading["power_w"], reading["provenance"]) == (12.5, "simulated")


def row(shown: list[str], name: str) -> str:
    return re.sub(r"\s+", " ", next(line for line in shown if line.startswith(f"{name} ")))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--from", "nowhere"], "is not a server address"),
        (["--from", "http://127.0.0.1:1"], "no powerlab server answers"),
        (["--from", "http://127.0.0.1:1", "--board", "laptop"], "leave out --board and --sysroot"),
    ],
)
def test_a_server_that_cannot_be_asked_gets_a_sentence(given, said, capsys):
    assert main(["top", *given]) == 2
    assert said in capsys.readouterr().err


def test_the_screen_outlives_its_server(shelf):
    """In a terminal: the fleet, one device, the server gone and back, and the end."""
    port = free_port()
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "powerlab.cli", "top", "--interval", "100ms", "--from", f"http://127.0.0.1:{port}"]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    with served(create_app(shelf.store), port=port):
        process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment)
        _until(master, b"warm-up 1/36")
        os.write(master, b"\r")
        _until(master, b"ina3221:VDD")
    _until(master, b"No answer since")
    os.write(master, b"\x1b")
    with served(create_app(shelf.store), port=port):
        _until(master, b"power now: 12.50 W", without=b"No answer since")
        process.send_signal(signal.SIGINT)
        _until(master, b"\x1b[?1049l")
        assert process.wait(timeout=120) == 0
    os.close(master)
    os.close(slave)


def _until(terminal: int, wanted: bytes, without: bytes | None = None) -> None:
    """Read what is shown until it holds what is wanted, on a screen that lacks something."""
    shown, end_s = b"", time.monotonic() + 60
    while wanted not in shown or (without is not None and without in shown):
        assert time.monotonic() < end_s, shown[-3000:]
        if select.select([terminal], [], [], 0.1)[0]:
            shown += os.read(terminal, 65536)
        if without is not None:
            shown = shown[shown.rfind(b"\x1b[H") :]  # a new screen begins at its upper left corner
