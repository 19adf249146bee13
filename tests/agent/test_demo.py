"""The demo, end to end, and its plan."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.cli.commands.demo.plan import demo_plan
from powerlab.domain.device import Capabilities
from powerlab.domain.mode import CURRENT_MODE, ModeOrigin, PowerMode
from powerlab.domain.preflight import check_plan
from powerlab.protocol.records import DeviceRecord
from powerlab.store import open_store
from powerlab.store.reads import queries
from server_examples import capabilities, device

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def record(cores: int, modes: tuple[PowerMode, ...]) -> DeviceRecord:
    able = Capabilities(sources=(), total=None, modes=modes)
    return DeviceRecord(id="d", device=device(cores=cores), capabilities=able, enrolled_at=NOW, seen_at=NOW)


@given(
    cores=st.integers(1, 256),
    online=st.lists(st.none() | st.integers(1, 64), max_size=6),
    seconds=st.floats(1, 1000),
)
def test_the_plan_can_be_carried_out_and_takes_about_as_long_as_asked(
    cores: int, online: list[int | None], seconds: float
) -> None:
    modes = (CURRENT_MODE, *(PowerMode(name=f"M{i}", online_cores=count) for i, count in enumerate(online)))
    one = record(cores, modes)
    plan = demo_plan(one, "resnet50", seconds)
    check_plan(plan, one.device, one.capabilities)
    runs = len(plan.points()) * plan.repeats
    smallest = len(plan.modes) == 1 and len(plan.threads) <= 2
    assert smallest or runs * (plan.duration_s + 2.5) <= seconds + 0.1 * runs
    assert plan.threads[0] == 1
    assert plan.modes[0] == "current"
    assert 3.0 <= plan.duration_s <= 5.0


def test_the_vendors_maximum_is_left_to_current_where_other_modes_can_be_set() -> None:
    names = ("current", "MAXN", "MODE_15W", "MODE_30W", "MODE_10W")
    board = record(8, tuple(PowerMode(name=name, online_cores=8) for name in names))
    assert demo_plan(board, "resnet50", 1000).modes == ("current", "MODE_15W", "MODE_30W")


@pytest.mark.parametrize(("simulated", "modes"), [(False, ("current",)), (True, ("current", "governor=powersave"))])
def test_a_demo_on_somebodys_own_machine_invents_no_modes(simulated: bool, modes: tuple[str, ...]) -> None:
    invented = [
        PowerMode(name=name, origin=ModeOrigin.INVENTED, online_cores=4) for name in ("cores=1", "governor=powersave")
    ]
    one = record(4, (CURRENT_MODE, *invented))
    one = replace(one, device=replace(one.device, simulated=simulated))
    assert demo_plan(one, "resnet50", 1000).modes == modes


def test_modes_that_need_a_reboot_are_left_out() -> None:
    one = record(4, capabilities().modes)
    assert demo_plan(one, "resnet50", 1000).modes == ("current", "SLOW")


def demo(state: Path, *words: str) -> list[str]:
    common = ["--state", str(state), "--port", "0", "--seconds", "20", "--model", "mobilenetv2"]
    return [sys.executable, "-m", "powerlab.cli", "demo", *common, *words]


def printed_commands(output: str) -> list[list[str]]:
    """The commands that the demo proposes at its end, as somebody would paste them."""
    lines = output.partition("next:\n")[2].partition("dashboard: ")[0].splitlines()
    assert len(lines) == 3
    return [[sys.executable, "-m", "powerlab.cli", *line.split()[1:]] for line in lines]


def descendants_of_demo(state: Path) -> list[psutil.Process]:
    everybody = psutil.process_iter(["cmdline"])
    return [process for process in everybody if str(state) in " ".join(process.info["cmdline"] or ())]


@pytest.mark.campaign(minutes=3)
def test_the_demo_measures_and_ends(tmp_path: Path) -> None:
    state = tmp_path / "demo"
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "xdg")}
    done = subprocess.run(demo(state), capture_output=True, text=True, timeout=400, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for words in (
        "mobilenetv2",
        "img/s/W",
        "phases: server",
        "dashboard: http://",
        f"powerlab serve --database {state}",
    ):
        assert words in done.stdout
    (address,) = [line for line in done.stdout.splitlines() if line.startswith("dashboard: ")]
    assert "/sweeps/" in address
    assert address.endswith(f"`powerlab serve --database {state / 'powerlab.db'}`")
    for command in printed_commands(done.stdout):
        again = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment, check=False)
        assert again.returncode == 0, again.stdout + again.stderr
    store = open_store(state / "powerlab.db")
    with store.session() as session:
        (sweep,) = queries.list_sweeps(session)
        assert sweep.stored_run_count == sweep.planned_run_count
    store.close()
    assert descendants_of_demo(state) == []


@pytest.mark.campaign(minutes=3)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    state = tmp_path / "demo"
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "xdg")}
    process = subprocess.Popen(demo(state), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert "runs on" in process.stdout.readline()
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert descendants_of_demo(state) == []
