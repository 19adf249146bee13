"""``powerlab agent check``: a sentence and an exit status for each thing an agent needs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from free_port import free_port
from powerlab.boards.simulator.reboot import reboot
from powerlab.boards.simulator.tree import create_tree
from powerlab.domain.device import SelfCheck
from powerlab.domain.power import TOO_LOW
from powerlab.domain.temperature import TemperatureLimits
from powerlab.modes.reboot.return_note import ReturnNote
from powerlab.modes.reboot.transition import Rebooting, check_can_go
from powerlab.protocol.messages import ServerTime
from powerlab.protocol.wire import decode
from powerlab.store import open_store
from powerlab.store.reads import queries
from powerlab.store.tables import TokenRow
from powerlab.sweep.host import Host
from powerlab.sysroot import Sysroot
from powerlab_agent import room, self_check
from powerlab_agent.client import Client
from powerlab_agent.daemon import Daemon
from powerlab_agent.main import main
from powerlab_agent.models import ModelCache
from powerlab_agent.room import Limits
from powerlab_agent.self_check import CHECKS, Checked, check_self
from powerlab_agent.spool import Spool
from powerlab_agent.state import Identity, save_identity


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    create_tree("jetson-agx-xavier", tmp_path / "tree")
    return tmp_path / "tree"


@pytest.fixture
def checked(identity: Identity, state: Path, tree: Path) -> Checked:
    host = Host(sysroot=Sysroot(tree), state_dir=tree / "state", name=identity.device_name)
    client = Client(identity.server, identity.token)
    return Checked(state=state, limits=Limits(reserve_bytes=1), client=client, host=host)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    handlers = logging.getLogger().handlers[:]
    yield
    logging.getLogger().handlers[:] = handlers


def failed(checked: Checked) -> dict[str, str]:
    return {one.name: one.detail for one in check_self(checked) if not one.passed}


def test_all_is_well(checked: Checked, state: Path, tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert failed(checked) == {}
    words = ["check", "--state", str(state), "--sysroot", str(tree)]
    assert main([*words, "--json"]) == 0
    found = decode(capsys.readouterr().out, tuple[SelfCheck, ...])
    assert [one.name for one in found] == list(CHECKS)
    assert all(one.detail.endswith(".") and one.passed for one in found)
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["ok", name] for name in CHECKS]


def test_each_has_a_status_of_its_own() -> None:
    statuses = [status for status, _ in CHECKS.values()]
    assert len(set(statuses)) == len(statuses)
    assert not {0, 1, 2, 130} & set(statuses)


def test_a_server_that_is_away(identity: Identity, state: Path, tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_identity(state, replace(identity, server=f"http://127.0.0.1:{free_port()}"))
    assert main(["check", "--state", str(state), "--sysroot", str(tree)]) == CHECKS["server"][0]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in lines if line.startswith("NOT OK")] == ["server", "token", "clock"]


def test_a_token_that_was_revoked(server: Any, checked: Checked, identity: Identity) -> None:
    with closing(open_store(server.database)) as store, store.write() as session:
        session.query(TokenRow).filter_by(device_id=identity.device_id).one().revoked_at = store.clock()
    assert "enrol the device again" in failed(checked)["token"]


def test_a_clock_that_is_wrong(checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Client.time

    def an_hour_ahead(client: Client) -> ServerTime:
        said = real(client)
        return ServerTime(received_ns=said.received_ns + 3600 * 10**9, sent_ns=said.sent_ns + 3600 * 10**9)

    monkeypatch.setattr(Client, "time", an_hour_ahead)
    assert "3.6e+03 s behind the server's" in failed(checked)["clock"]


def test_no_room_and_no_place(checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "free some space" in failed(replace(checked, limits=Limits(reserve_bytes=1 << 60)))["disk"]
    found = failed(replace(checked, state=Path("/proc/none")))
    assert "give another --state" in found["state"]
    assert "cannot be queried" in found["disk"]
    assert room.free_bytes(checked.state) > 0


def test_a_mode_that_was_not_put_back(checked: Checked) -> None:
    with checked.host.controller.applied("governor=powersave"):
        assert "powerlab modes restore" in failed(checked)["modes"]
    assert failed(checked) == {}


def test_a_device_that_a_sweep_rebooted_and_that_is_not_home(checked: Checked, tree: Path) -> None:
    host = checked.host
    device, target = Rebooting(host.sysroot, host.state_dir), host.controller.reboot_target("MODE_10W")
    ReturnNote(host.sysroot, host.state_dir).keep(check_can_go(device, target), device.settings(), target)
    device.ask(target)
    reboot(host.sysroot)
    said = failed(checked)
    assert list(said) == ["modes"]
    assert "rebooted into MODE_10W for a sweep and is not back in MAXN" in said["modes"]
    assert "`sudo nvpmodel -m 0`" in said["modes"]


def test_sensors_that_are_missing(checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    able = checked.host.capabilities()
    part = replace(able.total, scope=f"{TOO_LOW} VDD_GPU cannot be read")
    for total, words in ((None, "no power sensor can be read"), (part, "too low, because VDD_GPU cannot be read")):
        monkeypatch.setattr(Host, "capabilities", lambda _, total=total: replace(able, total=total))
        assert words in failed(checked)["sensors"]


def test_a_limit_that_nobody_can_watch(checked: Checked, tree: Path) -> None:
    said = {one.name: one.detail for one in check_self(checked)}["temperature"]
    assert said == "temperatures are read from CPU-therm, GPU-therm; this agent has no limit of its own."
    checked.host.temperature_limits = TemperatureLimits(max_c=85.0)
    said = {one.name: one.detail for one in check_self(checked)}["temperature"]
    assert said.endswith("; here a run begins below 75 °C and is ended above 85 °C.")
    for zone in (tree / "sys/class/thermal").glob("thermal_zone*/temp"):
        zone.unlink()
    assert "the guard cannot watch that a run begins below 75 °C" in failed(checked)["temperature"]
    checked.host.temperature_limits = TemperatureLimits()
    assert failed(checked) == {}
    said = {one.name: one.detail for one in check_self(checked)}["temperature"]
    assert said.startswith("no temperature sensor can be read: the guard cannot watch")


def test_an_agent_whose_limits_mean_nothing_does_not_start(state: Path, tree: Path, capsys: Any) -> None:
    words = ["run", "--once", "--state", str(state), "--sysroot", str(tree), "--max-temperature-c"]
    assert main([*words, "nan"]) == 2
    assert "the highest temperature is nan °C; give one from -40 to 150 °C" in capsys.readouterr().err
    assert main([*words, "70", "--start-below-temperature-c", "70"]) == 2
    assert "let it begin below less than that" in capsys.readouterr().err


def test_a_user_without_rights_needs_the_helper(checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Checked(
        state=checked.state, limits=checked.limits, client=checked.client, host=Host(state_dir=checked.state)
    )
    monkeypatch.setattr(self_check.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(self_check.helper, "is_there", lambda _: False)
    assert "powerlab-helper.socket" in failed(real)["helper"]
    monkeypatch.setattr(self_check.helper, "is_there", lambda _: True)
    assert "helper" not in failed(real)


def test_an_agent_that_starts_tells_the_server(server: Any, checked: Checked, identity: Identity) -> None:
    with closing(Spool(checked.state / "spool.db")) as spool:
        found = (SelfCheck(name="disk", passed=False, detail="little room."),)
        models = ModelCache(checked.client, checked.state / "models", 1_000_000)
        agent = Daemon(client=checked.client, host=checked.host, spool=spool, models=models, once=True)
        agent.checks = lambda: found
        agent.run()
    with closing(open_store(server.database)) as store, store.session() as session:
        assert queries.device(session, identity.device_id).checks == found
