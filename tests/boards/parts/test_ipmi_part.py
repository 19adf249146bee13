"""A simulated server's management controller: whole watts of the whole machine, once a second."""

from __future__ import annotations

import random
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from powerlab.boards.registry import BOARDS, board_document
from powerlab.boards.simulator import create_tree
from powerlab.boards.simulator.loop import Simulator
from powerlab.boards.simulator.parts.base import Moment
from powerlab.boards.simulator.parts.ipmi import READING, Ipmi
from powerlab.domain.power import Availability
from powerlab.domain.quantity import Provenance
from powerlab.power.sources import ipmi as source
from powerlab.sysroot import Sysroot

SERVERS = [name for name in BOARDS if "ipmi" in board_document(name).get("simulation", {})]


@pytest.fixture
def xeon(tmp_path: Path) -> Sysroot:
    create_tree("intel-xeon", tmp_path / "xeon")
    return Sysroot(tmp_path / "xeon")


def ask(sysroot: Sysroot, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sysroot.path("/usr/bin/ipmitool"), *arguments], capture_output=True, text=True, check=False)


def test_the_servers_have_one() -> None:
    assert set(SERVERS) >= {"intel-xeon", "ampere-altra", "nvidia-grace", "apm-xgene"}


@pytest.mark.parametrize("name", SERVERS)
def test_every_server_is_read_by_the_real_source(name: str, tmp_path: Path) -> None:
    create_tree(name, tmp_path / "server")
    sysroot = Sysroot(tmp_path / "server")
    probe = source.Ipmi().probe(sysroot)
    assert probe.availability is Availability.AVAILABLE, probe
    assert {rail.provenance for rail in probe.rails} == {Provenance.SIMULATED}
    (channel,) = source.Ipmi().channels(sysroot)
    power_w = channel.read()  # type: ignore[union-attr]
    assert power_w == round(power_w) > 10


def test_the_text_is_that_of_the_real_program(xeon: Sysroot) -> None:
    text = ask(xeon, "dcmi", "power", "reading").stdout
    now = xeon.read(READING).split()[1]
    assert f"    Instantaneous power reading:              {int(now):8d} Watts\n" in text
    assert "    Power reading state is:                   activated\n" in text


def test_other_questions_are_refused(xeon: Sysroot) -> None:
    done = ask(xeon, "chassis", "power", "off")
    assert done.returncode == 1
    assert "dcmi power reading" in done.stdout


def test_without_its_device_it_cannot_be_asked(xeon: Sysroot) -> None:
    xeon.path("/dev/ipmi0").unlink()
    assert "Could not open device" in ask(xeon, "dcmi", "power", "reading").stderr
    assert source.Ipmi().probe(xeon).availability is Availability.ABSENT


def test_a_controller_that_is_switched_off_is_a_state(xeon: Sysroot) -> None:
    xeon.path(READING).write_text(xeon.read(READING).replace("activated  ", "deactivated") + "\n")
    probe = source.Ipmi().probe(xeon)
    assert probe.availability is Availability.BROKEN
    assert "deactivated" in probe.detail


def test_it_follows_the_machine_once_a_second_with_the_supplys_loss(xeon: Sysroot) -> None:
    board = BOARDS["intel-xeon"]
    part = Ipmi(board, {"supply_loss": 0.1, "state": "activated"}, "")
    part.open(xeon)
    with_moment = _moment(xeon)
    readings = []
    for tick in range(500):
        now_ns = 1_000_000_000 + tick * 10_000_000
        watts = 200.0 if tick < 250 else 400.0
        part.tick(replace(with_moment, now_ns=now_ns, passed_s=0.01, components_w={"cpu0": watts}))
        readings.append(tuple(int(text) for text in xeon.read(READING).split()[1:]))
    part.close()
    changes = sum(before != after for before, after in pairwise(readings))
    assert changes <= 5
    now, least, most, mean = readings[-1]
    assert now == pytest.approx(440, rel=0.02)
    assert least == pytest.approx(220, rel=0.02)
    assert least < mean < most
    assert most >= now


def _moment(sysroot: Sysroot) -> Moment:
    """A real moment of the board, to be altered."""
    simulator = Simulator(sysroot)
    seen: list[Moment] = []
    simulator._parts[0].tick = seen.append  # type: ignore[method-assign]
    simulator.tick(1_000_000_000)
    simulator.close()
    return replace(seen[0], noise=random.Random(5))
