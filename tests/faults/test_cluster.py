"""Two whole agents on simulated boards that train together as one sweep of a real server; one of them is killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from agent_server import Server
from child_process import ChildProcess
from powerlab.boards.simulator.process import running
from powerlab.boards.simulator.tree import create_tree
from powerlab.domain.run import Run, Verdict
from powerlab.protocol.messages import EnrolmentCode
from powerlab.protocol.records import SweepState
from powerlab.store import Store, open_store
from powerlab.store.reads import queries

pytestmark = pytest.mark.campaign(minutes=2)

BOARDS = {"one": "jetson-orin-nano", "two": "jetson-nano"}
QUICK = ["--warm-up", "0.1", "--longest-warm-up", "0.2", "--idle", "0.4", "--min-inferences", "3", "--threads", "1"]


def powerlab(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "powerlab.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


class Fleet:
    """Two boards with agents that can be started and killed."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.agents: dict[str, ChildProcess] = {}

    def start(self, name: str) -> None:
        command = [sys.executable, "-m", "powerlab.cli", "agent", "run", "--state", str(self.folder / f"{name}-state")]
        with (self.folder / f"{name}.log").open("a") as log:
            self.agents[name] = ChildProcess(command, stderr=log)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def create(self, *words: str) -> subprocess.CompletedProcess[str]:
        plan = ["squeezenet", "--workload", "train", *QUICK, *words]
        return powerlab("sweep", "create", *plan, "--server", self.url)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with leases of the usual length."""
    server = Server(database=tmp_path_factory.mktemp("server") / "powerlab.db")
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def stored(server: Server) -> Iterator[Store]:
    """Its database."""
    with closing(open_store(server.database)) as store:
        yield store


@pytest.fixture(scope="module")
def fleet(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    fleet = Fleet(server.url, folder)
    with ExitStack() as stack:
        for name, board in BOARDS.items():
            create_tree(board, folder / name)
            stack.enter_context(running(folder / name))
            code = server.post("/enrolment-codes", {}, EnrolmentCode).code
            words = ["--server", server.url, "--code", code, "--name", name, "--sysroot", str(folder / name)]
            enrolled = powerlab("agent", "enrol", *words, "--state", str(folder / f"{name}-state"))
            assert enrolled.returncode == 0, enrolled.stderr
            fleet.start(name)
        yield fleet
        for agent in fleet.agents.values():
            agent.kill()
            agent.wait()


def runs_when(stored: Store, fleet: Fleet, sweep_id: str, enough: Callable[[SweepState, list[Run]], bool]) -> list[Run]:
    """Wait for runs; the logs tell why they do not come."""
    for _ in range(3000):
        with stored.session() as session:
            state, runs = queries.sweep(session, sweep_id).state, queries.runs_of_sweep(session, sweep_id)
        if enough(state, runs):
            return runs
        time.sleep(0.2)
    raise AssertionError(f"{state}: {runs}\n{fleet.log('one')}\n{fleet.log('two')}")


def over(state: SweepState, _runs: list[Run]) -> bool:
    return state is SweepState.DONE


def test_two_devices_train_as_one_and_their_powers_add_up(fleet: Fleet, stored: Store) -> None:
    created = fleet.create("--batch", "2", "--duration", "1", "--devices", "one,two")
    assert "3 runs queued for one with two" in created.stdout, created.stderr
    for run in runs_when(stored, fleet, created.stdout[:36], over):
        assert run.verdict is not Verdict.FAILED, run.findings
        one, two = run.conditions.nodes
        assert (one.name, two.name, run.point.workload.nodes) == ("one", "two", 2)
        assert all(rail.endswith("@two") for rail in two.rails)
        assert run.total.rails == (*one.rails, *two.rails)
        window_s = (run.window_ns[1] - run.window_ns[0]) / 1e9
        power = run.metric("power_w")
        assert power.value == pytest.approx((one.energy_j + two.energy_j) / window_s)
        assert all(0 < node.low_j < node.energy_j < node.high_j for node in (one, two))
        assert 0 < two.clock_error_s < 0.1
        parts = [run.metric(f"{name}_p50_ms") for name in ("forward", "backward", "reduce", "update")]
        assert sum(one.value for one in parts) == pytest.approx(run.metric("latency_p50_ms").value, rel=0.3)
        assert run.metric("forward_energy_j") is None, "the other device was in another part then"
        assert run.metric("throughput_img_per_s").value == pytest.approx(2 * run.inference_count / window_s)
        with stored.session() as session:
            assert {trace.rail.key for trace in queries.power_traces(session, run.id)} >= set(run.total.rails)
    told = powerlab("runs", "show", run.id, "--from", fleet.url).stdout
    assert all(f"device {name}: " in told for name in BOARDS), told
    audited = powerlab("audit", run.id, "--from", fleet.url)
    assert audited.returncode == 0, audited.stdout + audited.stderr


def test_a_device_that_dies_fails_its_run_and_the_sweep_goes_on_when_it_is_back(fleet: Fleet, stored: Store) -> None:
    created = fleet.create("--batch", "4", "--duration", "4", "--devices", "one,two")
    sweep_id = created.stdout[:36]
    followed = fleet.log("two").count("begins, of several devices")
    runs_when(stored, fleet, sweep_id, lambda state, _: state is SweepState.RUNNING)
    for _ in range(3000):
        if fleet.log("two").count("begins, of several devices") > followed:
            break
        time.sleep(0.1)
    else:
        pytest.fail(f"the device two did not begin: {fleet.log('two')}")
    time.sleep(4)
    fleet.agents["two"].kill()
    fleet.agents["two"].wait()
    (first, *_) = runs_when(stored, fleet, sweep_id, lambda _, runs: len(runs) > 0)
    fleet.start("two")
    assert first.verdict is Verdict.FAILED
    (finding,) = first.findings
    assert finding.detail.startswith("the device two is gone ("), finding.detail
    later = [run for run in runs_when(stored, fleet, sweep_id, over) if run.id != first.id]
    assert len(later) == 2
    assert all(run.verdict is not Verdict.FAILED for run in later), [run.findings for run in later]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--devices", "one,three"], "three"),
        (["--devices", "one,one"], "the device one is named twice; name every device of a cluster once."),
        (["--devices", "one"], "--devices got 'one'; name two devices or more, such as nano-1,nano-2."),
        (["--devices", "one,two", "--batch", "1"], "a batch of 1 has fewer samples than the 2 devices; ask for 2 or"),
        (["--devices", "one,two", "--batch", "3"], "a batch of 3 cannot be shared evenly by 2 devices; ask for m"),
        (["--devices", "one,two", "--batch", "2", "--engine", "torch"], "the engine builtin alone trains on several"),
        (["--devices", "one,two", "--workload", "inference"], "several devices train together, and infer by themselv"),
    ],
)
def test_bad_words_get_a_sentence(fleet: Fleet, words: list[str], sentence: str) -> None:
    refused = fleet.create(*words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert sentence in refused.stderr
    assert refused.stderr.count("\n") == 1
