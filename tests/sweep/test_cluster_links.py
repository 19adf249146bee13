"""The first device of a cluster and its links: who may come, what is said of who does not, whose clock counts."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab import __version__
from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Trace
from powerlab.measure.recording.rails import Meter
from powerlab.sweep.cluster.clocks import Comparison, aligned
from powerlab.sweep.cluster.leader import Cluster
from powerlab.sweep.cluster.link import Clock, Done, Hello, Link, LinkError, Now
from powerlab.sysroot import Sysroot
from server_examples import PLAN, RAIL, TOTAL

HELLO = Hello(name="two", version=__version__, rails=(RAIL,), scope="all of it", lively={RAIL.key: 3.0})
METER = Meter(sysroot=Sysroot(), total=TOTAL, rails=(RAIL,), sample_period_s=0.01)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster("one", ["two"], PLAN, threading.Event(), patience_s=2.0) as cluster:
        yield cluster


def come(cluster: Cluster, hello: Hello | Done = HELLO, key: str | None = None) -> Link:
    link = Link(socket.create_connection(("127.0.0.1", cluster.port)), cluster.key if key is None else key)
    link.send(hello)
    return link


def test_a_device_that_comes_brings_its_rails_under_its_name(cluster):
    link = come(cluster)
    joined = cluster.joined(METER)
    assert [rail.key for rail in joined.rails] == [RAIL.key, f"{RAIL.key}@two"]
    assert joined.total.rails == (RAIL.key, f"{RAIL.key}@two")
    assert joined.total.scope == f"one: {TOTAL.scope}; two: all of it"
    assert joined.own == (RAIL,)
    assert joined.lively == {f"{RAIL.key}@two": 3.0}
    assert [(one.name, one.rails) for one in cluster.powers(joined.own)] == [
        ("one", (RAIL.key,)),
        ("two", (f"{RAIL.key}@two",)),
    ]
    link.close()


def test_where_one_has_no_power_the_whole_has_none(cluster):
    link = come(cluster, Hello(name="two", version=__version__, rails=(), scope="", lively={}))
    joined = cluster.joined(METER)
    assert (joined.total, joined.rails) == (None, ())
    link.close()


@pytest.mark.parametrize(
    ("hello", "sentence"),
    [
        (Hello(name="two", version="0.0.1", rails=(), scope="", lively={}), "two has powerlab 0.0.1, and one has"),
        (Hello(name="three", version="", rails=(), scope="", lively={}), "a device came that does not belong to this"),
        (Done(failure="two: it has no such mode."), "two: it has no such mode"),
    ],
)
def test_who_cannot_take_part_is_told_at_once(cluster, hello, sentence):
    link = come(cluster, hello)
    with pytest.raises(PowerlabError, match=sentence):
        cluster.joined(METER)
    link.close()


def test_who_does_not_know_the_key_is_not_let_in_and_one_who_does_not_come_is_named():
    with Cluster("one", ["two"], PLAN, threading.Event(), patience_s=0.3) as cluster:
        stranger = come(cluster, key="guessed")
        with pytest.raises(PowerlabError, match=r"the device two did not come within 0\.3 s; look whether its agent"):
            cluster.joined(METER)
        with pytest.raises(LinkError):
            stranger.receive(5)
        stranger.close()


def test_a_question_has_its_answer_and_a_closed_link_is_seen():
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(lambda: Link(listener.accept()[0], "key"))
        asking = Link(socket.create_connection(listener.getsockname()), "key")
        answering = accepted.result(10)
        answer = pool.submit(lambda: (answering.receive(10), answering.send(Now(time_ns=5))))
        assert asking.ask(Clock(), Now, 10).time_ns == 5
        assert answer.result(10)[0] == Clock()
        assert not asking.is_gone(0)
        answering.close()
        assert asking.is_gone(5)
        with pytest.raises(LinkError, match="it closed the connection"):
            asking.receive(5)
        asking.close()


@given(
    offset_ns=st.integers(-(10**18), 10**18),
    drift_ppm=st.floats(-200, 200),
    errors_ns=st.tuples(st.integers(-1000, 1000), st.integers(-1000, 1000)),
)
def test_times_of_another_clock_become_ours(offset_ns, drift_ppm, errors_ns):
    ours = np.linspace(1_000_000_000, 6_000_000_000, 50).astype(np.int64)

    def theirs(at_ns: np.ndarray) -> np.ndarray:
        return at_ns - offset_ns - np.round(1e-6 * drift_ppm * (at_ns - ours[0])).astype(np.int64)

    before, after = (
        Comparison(at_ns=int(at), offset_ns=int(at - theirs(np.array([at]))[0]) + error, error_s=1e-6)
        for at, error in zip((ours[0] - 10_000_000, ours[-1] + 10_000_000), errors_ns, strict=True)
    )
    trace = Trace(rail=replace(RAIL, name="VDD@two"), time_ns=theirs(ours), value=np.ones(50))
    moved = aligned(trace, before, after)
    assert np.abs(moved.time_ns - ours).max() <= 1000 + 2_000  # the comparisons' errors; what rates of 200 ppm leave
