"""Agent and server in network namespaces of their own, and what happens to the cable between them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from child_process import ChildProcess
from faults.cable import AGENT, MOVED, SERVER, Cable, plugged_cable
from faults.lives import FAULTS, PLAN, Lives, Shim, start_lives
from powerlab.protocol.messages import EnrolmentCodeRequest, EnrolRequest, SweepRequest
from powerlab.store import Store, open_store
from powerlab.store.writes.devices import enrol, make_enrolment_code
from powerlab.store.writes.sweeps import create_sweep
from powerlab_agent.state import Identity
from server_examples import capabilities, device

pytestmark = pytest.mark.campaign(minutes=0.5)

ROUNDS = int(os.environ.get("POWERLAB_FAULT_CABLES", "1"))
PORT = 8765
OUT_S = 1.2
SLOW_BITS_PER_S = 200_000


@contextmanager
def pulled(cable: Cable) -> Iterator[None]:
    cable.pull()
    yield
    cable.plug()


def no_route(kind: str) -> Callable[[Cable], object]:
    @contextmanager
    def fault(cable: Cable) -> Iterator[None]:
        cable.route("add", kind)
        yield
        cable.route("delete", kind)

    return fault


@contextmanager
def throttled(cable: Cable) -> Iterator[None]:
    cable.throttle(SLOW_BITS_PER_S)
    yield
    cable.unthrottle()


@contextmanager
def moved(cable: Cable) -> Iterator[None]:
    cable.move(AGENT, MOVED)
    yield
    cable.move(MOVED, AGENT)


HAPPENINGS = {
    "cable pulled": pulled,
    "no route to the server": no_route("unreachable"),
    "route forbidden": no_route("prohibit"),
    "packets dropped here": no_route("blackhole"),
    "slow, packets lost": throttled,
    "another address, twice": moved,
}


@pytest.fixture(scope="module")
def cable() -> Iterator[Cable]:
    with plugged_cable() as cable:
        yield cable


@pytest.fixture(scope="module")
def far_store(quick_disk: Path) -> Iterator[Store]:
    with closing(open_store(quick_disk / "far.db")) as store:
        yield store


@pytest.fixture(scope="module")
def far_agent(cable: Cable, far_store: Store, shim: Shim, quick_disk: Path) -> Iterator[Lives]:
    """An agent at one end of the cable, whose server is at the other."""
    with far_store.write() as session:
        code = make_enrolment_code(session, EnrolmentCodeRequest(), far_store.clock()).code
        session.flush()
        request = EnrolRequest(code=code, device=device("far"), capabilities=capabilities())
        reply = enrol(session, request, far_store.clock())
    words = ("--host", SERVER, "--port", str(PORT), "--database", str(quick_disk / "far.db"))
    command = [*cable.server.prefix, sys.executable, str(FAULTS / "short_server.py"), *words]
    address = f"http://{SERVER}:{PORT}"
    identity = Identity(server=address, device_id=reply.device_id, device_name="far", token=reply.token)
    with ChildProcess(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert address in server.stdout.readline()
            folder = quick_disk / "far"
            with start_lives(shim, identity, folder, read_s=OUT_S, prefix=cable.agent.prefix) as lives:
                yield lives
        finally:
            server.kill()


def test_every_run_arrives_once_whatever_happens_to_the_cable(cable: Cable, far_store: Store, far_agent: Lives) -> None:
    chance, within = random.Random(5), Counter[str]()
    for _ in range(ROUNDS):
        for name, happening in HAPPENINGS.items():
            with far_store.write() as session:
                request = SweepRequest(device_id=far_agent.identity.device_id, plan=PLAN)
                sweep_id = create_sweep(session, request, far_store.clock())
            far_agent.start()
            time.sleep(0.1 * chance.random())
            with happening(cable):
                within[name] += not far_agent.has_ended()
                time.sleep(OUT_S * (1 + chance.random()))
            assert far_agent.ended()[0] == 0
            far_agent.finish(far_store, sweep_id)
            far_agent.check(far_store, sweep_id)
    assert within.total() >= ROUNDS * len(HAPPENINGS) // 2
    sys.stdout.write(f"{ROUNDS * len(HAPPENINGS)} sweeps, and within them: {dict(within)}\n")
