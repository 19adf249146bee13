"""Power modes that need a reboot: the sweep goes on after it, and the device comes home, whatever happens between."""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agent_server import Server
from faults.lives import NEVER, Lives, Shim, content, start_lives
from faults.reboot_lives import host_of, life
from powerlab.boards.simulator.reboot import reboot, reboot_requested
from powerlab.boards.simulator.tree import create_tree
from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run, Verdict
from powerlab.domain.sweep import SweepPlan
from powerlab.modes.reboot.return_note import ReturnNote
from powerlab.protocol.messages import EnrolmentCode, EnrolRequest, RebootNotice
from powerlab.protocol.records import SweepState
from powerlab.store import Store
from powerlab.store.reads import queries
from powerlab.sysroot import Sysroot
from powerlab_agent.client import Client
from powerlab_agent.spool import Spool
from powerlab_agent.state import Identity, save_identity

pytestmark = pytest.mark.campaign(minutes=1)

KILLS = int(os.environ.get("POWERLAB_FAULT_REBOOT_KILLS", "3"))
PLAN = SweepPlan(models=("resnet50",), threads=(1,), modes=("MODE_10W", "current"), duration_s=0.1, repeats=3)
RUNS = len(PLAN.points()) * PLAN.repeats
GOVERNOR = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"
STATUS = "/var/lib/nvpmodel/status"


def settings(tree: Path) -> dict[str, str]:
    """Return every file of a board but those that say which boot it is and what was locked."""
    return {name: text for name, text in content(tree).items() if not name.endswith("boot_id")}


@dataclass
class Board:
    """A simulated Xavier whose owner has chosen a governor, and the agent's state."""

    folder: Path
    identity: Identity
    reboots: int = 0

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @property
    def sysroot(self) -> Sysroot:
        return Sysroot(self.tree)

    def boot(self) -> bool:
        """Reboot the board if it was asked to."""
        if not reboot_requested(self.sysroot):
            return False
        reboot(self.sysroot)
        self.reboots += 1
        return True

    def live(self, **options: Any) -> None:
        """Let the agent live, boot after boot, until nothing is asked for any more."""
        life(self.state, self.tree, **options)
        while self.boot():
            life(self.state, self.tree, **options)

    def return_note(self) -> ReturnNote:
        return ReturnNote(self.sysroot, self.state)

    def step(self) -> Any:
        with closing(Spool(self.state / "spool.db")) as spool:
            return spool.reboot()


@pytest.fixture
def board(server: Server, tmp_path: Path) -> Board:
    return make_board(server, tmp_path)


def make_board(server: Server, folder: Path) -> Board:
    create_tree("jetson-agx-xavier", folder / "tree")
    (folder / "tree" / GOVERNOR.lstrip("/")).write_text("ondemand\n")
    host = host_of(folder / "state", folder / "tree", f"xavier-{folder.parent.name}-{folder.name}")
    code = server.post("/enrolment-codes", {}, EnrolmentCode).code
    request = EnrolRequest(code=code, device=host.device(), capabilities=host.capabilities())
    reply = Client(server.url).enrol(request)
    identity = Identity(
        server=server.url, device_id=reply.device_id, device_name=request.device.name, token=reply.token
    )
    save_identity(folder / "state", identity)
    return Board(folder, identity)


@pytest.fixture
def runs_of(stored: Store) -> Callable[[str], list[Run]]:
    def read(sweep_id: str) -> list[Run]:
        with stored.session() as session:
            return queries.runs_of_sweep(session, sweep_id)

    return read


def state_of(stored: Store, sweep_id: str) -> SweepState:
    with stored.session() as session:
        return queries.sweep(session, sweep_id).state


def check_once_each(runs: list[Run]) -> None:
    wanted = {(point.id, repeat) for point in PLAN.points() for repeat in range(PLAN.repeats)}
    assert len(runs) == RUNS
    assert {(run.point.id, run.repeat) for run in runs} == wanted


def test_a_sweep_goes_on_after_the_reboot_and_the_board_comes_home(
    server: Server, stored: Store, board: Board, runs_of: Any
) -> None:
    before = settings(board.tree)
    sweep_id = server.create_sweep(board.identity, PLAN)
    life(board.state, board.tree)
    with stored.session() as session:
        down = queries.sweep(session, sweep_id)
    assert (down.state, down.detail) == (SweepState.RUNNING, "rebooting into MODE_10W")
    assert (down.held_until - stored.clock()).total_seconds() > 600, "the server waits for a device that reboots"
    assert {run.point.mode for run in runs_of(sweep_id)} == {"current"}, "all that needs no reboot comes first"
    assert board.return_note().pending().mode == "MODE_10W"
    assert board.boot()
    assert "takes it back when that sweep is over" in board.return_note().words()
    assert board.sysroot.read(GOVERNOR) == "schedutil", "the kernel has forgotten what its owner chose"
    board.live()
    check_once_each(runs_of(sweep_id))
    assert not [run.findings for run in runs_of(sweep_id) if run.verdict is Verdict.FAILED]
    assert board.reboots == 2, "there and back"
    assert settings(board.tree) == before
    assert (state_of(stored, sweep_id), board.step()) == (SweepState.DONE, None)
    assert board.return_note().pending() is None


def test_a_reboot_that_does_not_come_fails_the_points_and_nothing_else(
    server: Server, stored: Store, board: Board, runs_of: Any
) -> None:
    before = settings(board.tree)
    sweep_id = server.create_sweep(board.identity, PLAN)
    life(board.state, board.tree, goes_down=False, wait_s=0.05)
    runs = runs_of(sweep_id)
    check_once_each(runs)
    failed = {finding.detail for run in runs for finding in run.findings if run.verdict is Verdict.FAILED}
    assert {run.point.mode for run in runs if run.verdict is Verdict.FAILED} == {"MODE_10W"}
    assert "the device did not reboot within 0.05 s" in " ".join(failed)
    assert (state_of(stored, sweep_id), board.step()) == (SweepState.DONE, None)
    assert board.return_note().pending() is None
    assert board.sysroot.read(STATUS) == "pmode:0000", "nor does a later boot bring the mode"
    (board.tree / "simulation/reboot").unlink()
    assert settings(board.tree) == before


def test_a_mode_that_a_boot_does_not_bring_is_asked_for_once(
    server: Server, stored: Store, board: Board, runs_of: Any
) -> None:
    before = settings(board.tree)
    sweep_id = server.create_sweep(board.identity, PLAN)
    life(board.state, board.tree)
    board.sysroot.path(STATUS).write_text("pmode:0000\n")  # the board's own service chose otherwise
    board.boot()
    board.live()
    failed = [run for run in runs_of(sweep_id) if run.verdict is Verdict.FAILED]
    check_once_each(runs_of(sweep_id))
    assert {run.point.mode for run in failed} == {"MODE_10W"}
    assert "after the reboot for it nvpmodel mode should be 1 and reads 0" in failed[0].findings[0].detail
    assert board.reboots == 1
    assert (settings(board.tree), board.step()) == (before, None)


def test_a_lease_that_is_over_after_the_reboot_takes_the_board_home(
    server: Server, stored: Store, board: Board, runs_of: Any
) -> None:
    """The device's other agent was given the job meanwhile; what that measures is not measured twice."""
    before = settings(board.tree)
    sweep_id = server.create_sweep(board.identity, PLAN)
    life(board.state, board.tree)
    with closing(Spool(board.state / "spool.db")) as spool:
        held = spool.held()
    client = Client(server.url, board.identity.token)
    client.release(held.job_id, held.fencing_token)
    others = client.lease(0.0)
    notice = RebootNotice(fencing_token=others.fencing_token, mode="another", down_s=900.0)
    client.announce_reboot(others.job_id, notice)  # so that its lease does not run out here
    board.boot()
    board.live()
    assert (settings(board.tree), board.step(), board.reboots) == (before, None, 2)
    client.release(others.job_id, others.fencing_token)
    board.live()
    check_once_each(runs_of(sweep_id))
    assert (settings(board.tree), board.reboots) == (before, 4)
    assert state_of(stored, sweep_id) is SweepState.DONE


def test_a_sweep_that_is_cancelled_while_the_device_is_down_takes_it_home(
    server: Server, stored: Store, board: Board, runs_of: Any
) -> None:
    before = settings(board.tree)
    sweep_id = server.create_sweep(board.identity, PLAN)
    life(board.state, board.tree)
    server.post(f"/sweeps/{sweep_id}/cancel", {}, dict)
    board.boot()
    board.live()
    assert {run.point.mode for run in runs_of(sweep_id)} == {"current"}
    assert (settings(board.tree), board.step(), board.reboots) == (before, None, 2)


def test_a_board_that_never_comes_home_is_not_rebooted_for_ever(server: Server, board: Board) -> None:
    server.create_sweep(board.identity, PLAN)
    life(board.state, board.tree)
    board.boot()
    for _ in range(3):
        life(board.state, board.tree)
        board.sysroot.path(STATUS).write_text("pmode:0001\n")  # whatever it is asked for
        assert board.boot()
    for _ in range(2):
        with pytest.raises(PowerlabError, match="does not come back to MAXN: the device was asked 3 times") as caught:
            life(board.state, board.tree)
        assert "`sudo nvpmodel -m 0`, reboot, and start the agent again" in str(caught.value)
        assert not board.boot()
    board.sysroot.path(STATUS).write_text("pmode:0000\n")
    reboot(board.sysroot)
    board.live()
    assert (board.step(), board.sysroot.read(GOVERNOR)) == (None, "ondemand")


def test_an_agent_that_may_not_reboot_any_more_says_what_to_do(server: Server, board: Board) -> None:
    sweep_id = server.create_sweep(board.identity, PLAN)
    life(board.state, board.tree)
    server.post(f"/sweeps/{sweep_id}/cancel", {}, dict)
    board.boot()
    with pytest.raises(PowerlabError, match="start it with --allow-reboot, or set it with `sudo nvpmodel -m 0`"):
        life(board.state, board.tree, may_reboot=False)
    assert not reboot_requested(board.sysroot)


def test_a_device_in_no_mode_of_its_table_is_not_rebooted(server: Server, board: Board, runs_of: Any) -> None:
    board.sysroot.path(STATUS).write_text("pmode:0042\n")
    sweep_id = server.create_sweep(board.identity, replace(PLAN, modes=("MODE_10W",)))
    board.live()
    reasons = [run.findings[0].detail for run in runs_of(sweep_id)]
    assert len(reasons) == PLAN.repeats
    assert all("in no power mode of its own table" in reason for reason in reasons)
    assert (board.reboots, board.step()) == (0, None)


@pytest.fixture(scope="module")
def lives(shim: Shim, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lives, Board]]:
    board = make_board(server, tmp_path_factory.mktemp("rebooting"))
    with start_lives(shim, board.identity, board.folder, "reboot_lives.py") as started:
        yield started, board


def finish(lives: Lives, board: Board, stored: Store, sweep_id: str) -> None:
    for _ in range(40):
        board.boot()
        assert lives.live("reboot")[0] == 0, (board.folder / "log").read_text()[-2000:]
        if state_of(stored, sweep_id) is SweepState.DONE and not reboot_requested(board.sysroot):
            return
    raise AssertionError(f"the sweep {sweep_id} is stuck: {(board.folder / 'log').read_text()[-2000:]}")


def test_an_agent_that_is_killed_on_its_way_through_reboots(
    server: Server, stored: Store, lives: tuple[Lives, Board], runs_of: Any
) -> None:
    """At calls that chance chooses out of each of the three lives: before the reboot, in the mode, and at home."""
    agent, board = lives
    before = settings(board.tree)
    chance, killed = random.Random(5), Counter[str]()
    lengths: list[int] = []
    sweep_id = server.create_sweep(board.identity, PLAN)
    for _ in range(3):
        status, calls, _ = agent.live("reboot", NEVER)
        assert status == 0
        lengths.append(calls)
        board.boot()
    assert state_of(stored, sweep_id) is SweepState.DONE
    for number in range(KILLS):
        sweep_id = server.create_sweep(board.identity, PLAN)
        which = number % 3
        for _ in range(which):
            assert agent.live("reboot")[0] == 0
            assert board.boot()
        status, _, name = agent.live("reboot", chance.randrange(lengths[which]), bool(chance.randrange(2)))
        killed[name if status == -9 else "ended before"] += 1
        rebooted = board.reboots
        finish(agent, board, stored, sweep_id)
        check_once_each(runs_of(sweep_id))
        assert not [run.findings for run in runs_of(sweep_id) if run.verdict is Verdict.FAILED]
        assert (settings(board.tree), board.step(), board.return_note().pending()) == (before, None, None)
        assert board.reboots - rebooted <= 2, "there and back, once each"
    assert killed["ended before"] <= max(1, KILLS // 4)
    sys.stdout.write(f"{KILLS} kills around reboots over {lengths} calls: {dict(killed.most_common())}\n")
