"""Uploads with an unreliable line: whatever is cut, everything arrives once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.messages import ChunksUpload, Lease, RunUpload, Stored
from powerlab.sweep.events import RunFinished
from powerlab_agent.client import Client, RefusedError, ServerUnreachableError
from powerlab_agent.retry import Backoff
from powerlab_agent.spool import Spool
from powerlab_agent.state import Identity
from powerlab_agent.uploader import Uploader
from server_examples import COUNTER, PLAN, RAIL, make_run, make_trace


class FlakyClient(Client):
    """Loses requests on their way there (``lost``) and answers on their way back (``unheard``)."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity.server, identity.token)
        self.fate: Iterator[str] = iter(())

    def put_run(self, message: RunUpload) -> Stored:
        return self._maybe(lambda: super(FlakyClient, self).put_run(message))

    def post_chunks(self, run_id: str, message: ChunksUpload) -> Stored:
        return self._maybe(lambda: super(FlakyClient, self).post_chunks(run_id, message))

    def _maybe(self, send: Any) -> Stored:
        fate = next(self.fate, "fine")
        if fate == "lost":
            raise ServerUnreachableError("lost")
        stored = send()
        if fate == "unheard":
            raise ServerUnreachableError("unheard")
        return stored


@pytest.fixture
def lease(identity: Identity, sweep_id: str) -> Lease:
    return Client(identity.server, identity.token).lease(0.0)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fates=st.lists(st.sampled_from(["fine", "lost", "unheard"]), max_size=12), place=st.integers(0, 23))
def test_everything_arrives_once(  # noqa: PLR0917 - pytest's and hypothesis's own arguments
    server: Any, identity: Identity, lease: Lease, tmp_path: Path, fates: list[str], place: int
) -> None:
    point, repeat = [(p, r) for p in PLAN.points() for r in range(PLAN.repeats)][place]
    if any((run.point.id, run.repeat) == (point.id, repeat) for run in server.runs(lease.sweep_id)):
        return
    run = make_run(lease.sweep_id, point, repeat)
    traces = (make_trace(RAIL, count=10), make_trace(COUNTER, count=10))
    client = FlakyClient(identity)
    client.fate = iter(fates)
    with closing(Spool(tmp_path / f"{run.id}.db")) as spool:
        spool.add(RunFinished(run=run, traces=traces, index=1, run_count=1), lease.fencing_token)
        uploader = Uploader(client, spool)
        for _ in range(len(fates) + 1):
            try:
                uploader.upload_all(lease)
            except ServerUnreachableError:
                assert spool.next().run == run
        assert spool.next() is None
    assert [one for one in server.runs(lease.sweep_id) if one.id == run.id] == [run]
    assert set(server.trace_counts(lease.sweep_id)) == {2}


def test_long_recordings_go_in_several_requests(server: Any, identity: Identity, lease: Lease, tmp_path: Path) -> None:
    class Counting(Client):
        sizes: ClassVar[list[int]] = []

        def post_chunks(self, run_id: str, message: ChunksUpload) -> Stored:
            self.sizes.append(len(message.chunks))
            return super().post_chunks(run_id, message)

    run = make_run(lease.sweep_id, PLAN.points()[0], 0)
    traces = (make_trace(RAIL, count=60_000), make_trace(COUNTER, count=70_000))
    with closing(Spool(tmp_path / "spool.db")) as spool:
        spool.add(RunFinished(run=run, traces=traces, index=1, run_count=1), lease.fencing_token)
        Uploader(Counting(identity.server, identity.token), spool).upload_all(lease)
        assert spool.next() is None
    assert Counting.sizes == [1, 1, 1]
    assert server.trace_counts(lease.sweep_id) == [2]


def test_a_refused_run_is_set_aside_and_the_next_one_sent(
    server: Any, identity: Identity, lease: Lease, tmp_path: Path
) -> None:
    stray = make_run("no-such-sweep", PLAN.points()[0], 0)
    good = make_run(lease.sweep_id, PLAN.points()[0], 0)
    with closing(Spool(tmp_path / "spool.db")) as spool:
        for run in (stray, good):
            spool.add(RunFinished(run=run, traces=(), index=1, run_count=2), lease.fencing_token)
        Uploader(Client(identity.server, identity.token), spool).upload_all(lease)
        assert "no-such-sweep" in spool.refused()[stray.id].reason
    assert server.runs(lease.sweep_id) == [good]
    with closing(Spool(tmp_path / "spool.db")) as spool:
        assert list(spool.refused()) == [stray.id]


def test_while_the_server_is_away_it_is_asked_less_often(lease: Lease, tmp_path: Path) -> None:
    class Away(Client):
        asked = 0

        def put_run(self, message: RunUpload) -> Stored:
            Away.asked += 1
            raise ServerUnreachableError("away")

    now = 0.0
    backoff = Backoff(first_s=10.0, longest_s=10.0)
    backoff.random = type("Longest", (), {"uniform": staticmethod(lambda low, high: high)})()
    with closing(Spool(tmp_path / "spool.db")) as spool:
        run = make_run(lease.sweep_id, PLAN.points()[0], 0)
        spool.add(RunFinished(run=run, traces=(), index=1, run_count=1), 1)
        uploader = Uploader(Away("http://nowhere"), spool, backoff, clock=lambda: now)
        for _ in range(5):
            uploader.upload_if_due(lease)
        assert Away.asked == 1
        now = 10.5
        uploader.upload_if_due(lease)
        assert Away.asked == 2


def test_addresses_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ServerUnreachableError):
        Client("http://127.0.0.1:1").lease(0.0)
    with pytest.raises(PowerlabError):
        Client("http://").lease(0.0)


def test_a_server_that_is_not_powerlabs(tmp_path: Path) -> None:
    import http.server
    import threading

    other = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    other.RequestHandlerClass.log_message = lambda *_: None
    thread = threading.Thread(target=other.handle_request)
    thread.start()
    with pytest.raises((RefusedError, ServerUnreachableError), match=r"powerlab|501"):
        Client(f"http://127.0.0.1:{other.server_port}").lease(0.0)
    thread.join()
    other.server_close()
