"""A sweep whose device waits to cool down says so on its server at once, and says when it goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.fake_agent import FakeHost, finished
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.temperature import Reading
from powerlab.protocol.events import Event, EventKind
from powerlab.protocol.messages import EnrolmentCodeRequest, EnrolRequest, SweepRequest
from powerlab.protocol.records import SweepRecord, SweepState
from powerlab.store import Store
from powerlab.store.reads import queries
from powerlab.store.reads.events import EventFilter, events_after
from powerlab.store.writes import control
from powerlab.store.writes.devices import enrol, make_enrolment_code
from powerlab.store.writes.sweeps import create_sweep
from powerlab.sweep.events import CoolingDown, RunFinished, RunStarted, SweepEvent, SweepStarted
from powerlab_agent.client import Client
from powerlab_agent.daemon import Daemon
from powerlab_agent.models import ModelCache
from powerlab_agent.spool import Spool
from quick_server import quick_server
from server_examples import PLAN, capabilities, device, make_run

WAIT_S = 120.0
HOT = Reading("CPU-therm", 91.2)


class HotBoard:
    """What measures: it waits before its first run until the test lets it go on, or the sweep is to end."""

    def __init__(self) -> None:
        self.cool = threading.Event()

    def __call__(
        self, plan: SweepPlan, sweep_id: str, host: Any, done: Any, stop: threading.Event | None
    ) -> Generator[SweepEvent, None, None]:
        assert stop is not None
        runs = [(point, repeat) for point in plan.points() for repeat in range(plan.repeats)]
        yield SweepStarted(sweep_id=sweep_id, run_count=len(runs), expected_s=1.0)
        yield CoolingDown(hottest=HOT, below_c=80.0, waited_s=0.0, longest_s=900.0)
        while not self.cool.is_set() and not stop.is_set():
            time.sleep(0.01)
        if stop.is_set():
            yield finished(sweep_id, stopped=True)
            return
        for index, (point, repeat) in enumerate(runs, start=1):
            yield RunStarted(point=point, repeat=repeat, index=index, run_count=len(runs))
            yield RunFinished(run=make_run(sweep_id, point, repeat), traces=(), index=index, run_count=len(runs))
        yield finished(sweep_id, stopped=False)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Store]]:
    with quick_server(tmp_path_factory.mktemp("quick") / "powerlab.db") as found:
        yield found


@pytest.fixture
def sweep_on(quick: tuple[str, Store], tmp_path: Path) -> Iterator[Callable[[HotBoard], Any]]:
    """Return a function that carries a sweep out on a board in a thread, and yields its identifier."""
    address, store = quick

    @contextmanager
    def sweep(board: HotBoard) -> Iterator[str]:
        name = tmp_path.name
        with store.write() as session:
            code = make_enrolment_code(session, EnrolmentCodeRequest(), store.clock()).code
            session.flush()
            request = EnrolRequest(code=code, device=device(name), capabilities=capabilities())
            reply = enrol(session, request, store.clock())
        with store.write() as session:
            sweep_id = create_sweep(session, SweepRequest(device_id=reply.device_id, plan=PLAN), store.clock())
        thread = threading.Thread(target=carry_out, args=(address, reply.token, tmp_path, name, board))
        thread.start()
        try:
            yield sweep_id
        finally:
            board.cool.set()
            thread.join(WAIT_S)
            assert not thread.is_alive()

    return sweep


def carry_out(address: str, token: str, folder: Path, name: str, board: HotBoard) -> None:
    with closing(Spool(folder / "spool.db")) as spool:
        client = Client(address, token)
        models = ModelCache(client, folder / "models", 10_000_000)
        host: Any = FakeHost(name, folder / "tree")
        Daemon(client=client, host=host, spool=spool, models=models, once=True, runner=board).run()


def until(store: Store, sweep_id: str, good: Callable[[SweepRecord], bool]) -> SweepRecord:
    deadline_s = time.monotonic() + WAIT_S
    while True:
        with store.session() as session:
            record = queries.sweep(session, sweep_id)
        if good(record):
            return record
        assert time.monotonic() < deadline_s, record
        time.sleep(0.01)


def told(store: Store, sweep_id: str) -> list[Event]:
    with store.session() as session:
        return events_after(session, 0, EventFilter(sweep_id=sweep_id), 1000)[0]


def test_the_sweep_says_what_it_waits_for_and_that_it_goes_on(quick, sweep_on):
    _, store = quick
    board = HotBoard()
    with sweep_on(board) as sweep_id:
        waiting = until(store, sweep_id, lambda record: bool(record.detail))
        assert waiting.state is SweepState.RUNNING
        assert waiting.detail == (
            "waits for the device to cool down: CPU-therm 91.2 °C, and a run begins below 80 °C (0 of at most 900 s)"
        )
        board.cool.set()
        over = until(store, sweep_id, lambda record: record.state is SweepState.DONE)
    assert over.detail == ""
    kinds = [event.kind for event in told(store, sweep_id)]
    assert kinds[:3] == [EventKind.SWEEP_CREATED, EventKind.SWEEP_STARTED, EventKind.SWEEP_WAITING]
    first, *rest = (event.detail for event in told(store, sweep_id) if event.kind is EventKind.SWEEP_WAITING)
    assert first == waiting.detail
    assert rest in ([], [""]), "that it goes on, unless it was over before anybody could say so"


def test_one_that_is_paused_while_it_waits_lets_go(quick, sweep_on):
    _, store = quick
    board = HotBoard()
    with sweep_on(board) as sweep_id:
        until(store, sweep_id, lambda record: bool(record.detail))
        with store.write() as session:
            control.pause(session, sweep_id, "ada", store.clock())
        record = until(store, sweep_id, lambda record: record.held_until is None)
    assert record.state is SweepState.PAUSED
    assert record.detail == "paused by ada"
    assert record.stored_run_count == 0
