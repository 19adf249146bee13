"""What comes by itself, through pipes: lines into readings, and a stream's session from first reading to end."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import Rail, RailQuantity
from powerlab.domain.quantity import Provenance
from powerlab.power.base import PolledChannel, Stamped
from powerlab.power.sampling.line_feed import LineFeed, program_feed
from powerlab.power.sampling.poller import Poller
from powerlab.power.sampling.stream import Arrival, Feed, Stream

PATIENCE_S = 20.0


def watts(text: str) -> Mapping[str, float]:
    return {"wall": float(text)}


class Pipe:
    """A feed that a test writes into."""

    def __init__(self, *, joined_late: bool = False) -> None:
        self.read_end, self.write_end = os.pipe()
        self.closed = 0
        self.feed = LineFeed(self.read_end, watts, self._close, joined_late=joined_late)

    def _close(self) -> None:
        self.closed += 1

    def send(self, text: str) -> None:
        os.write(self.write_end, text.encode())

    def hang_up(self) -> None:
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1


@pytest.fixture
def pipe() -> Iterator[Callable[..., Pipe]]:
    made: list[Pipe] = []

    def make(**options: bool) -> Pipe:
        made.append(Pipe(**options))
        return made[-1]

    yield make
    for one in made:
        one.hang_up()
        os.close(one.read_end)


def received(feed: LineFeed) -> list[float]:
    return [arrival.values_w["wall"] for arrival in feed.receive(PATIENCE_S)]


def fails(stream: Stream) -> bool:
    try:
        assert stream.read("wall") == (), "the last value must not come again"
    except OSError:
        return True
    return False


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_line_is_a_reading_once_it_is_whole(pipe: Callable[..., Pipe]) -> None:
    one = pipe()
    one.send("12.")
    assert received(one.feed) == []
    one.send("5\n3")
    assert received(one.feed) == [12.5]
    one.send("\r\n")
    assert received(one.feed) == [3.0]


def test_nothing_within_the_time_is_nothing(pipe: Callable[..., Pipe]) -> None:
    assert pipe().feed.receive(0.0) == ()


def test_of_lines_that_came_together_the_newest_counts(pipe: Callable[..., Pipe]) -> None:
    one = pipe()
    one.send("1\n2\n3\n")
    assert received(one.feed) == [3.0]


def test_a_line_that_began_before_anyone_listened_is_dropped(pipe: Callable[..., Pipe]) -> None:
    one = pipe(joined_late=True)
    one.send("4.5\n7.0\n")
    assert received(one.feed) == [7.0]


def test_what_is_no_reading_is_kept_as_a_complaint(pipe: Callable[..., Pipe]) -> None:
    one = pipe()
    one.send("no sensor\n")
    assert received(one.feed) == []
    assert one.feed.complaint == "no sensor"


def test_a_line_without_an_end_does_not_fill_the_memory_and_its_tail_is_no_reading(pipe: Callable[..., Pipe]) -> None:
    one = pipe()
    one.send("9" * 20000)
    while one.feed.receive(0.0):
        pass
    one.send("5\n6\n")
    until(lambda: received(one.feed) == [6.0])


def test_the_end_of_the_other_side_is_an_error_that_quotes_its_last_words(pipe: Callable[..., Pipe]) -> None:
    one = pipe()
    one.send("out of paper\n")
    one.feed.receive(PATIENCE_S)
    one.hang_up()
    with pytest.raises(ConnectionError, match="out of paper"):
        one.feed.receive(PATIENCE_S)


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_any_bytes_are_readings_or_complaints(chunks: list[bytes]) -> None:
    one = Pipe()
    try:
        for chunk in filter(None, chunks):
            os.write(one.write_end, chunk)
            for arrival in one.feed.receive(PATIENCE_S):
                assert set(arrival.values_w) == {"wall"}
    finally:
        one.hang_up()
        os.close(one.read_end)


def test_a_program_is_ended_with_its_feed() -> None:
    feed = program_feed(["/bin/sh", "-c", "echo 5; echo oops >&2; exec sleep 1000"], watts)
    assert received(feed) == [5.0]
    until(lambda: feed.receive(0.01) == () and feed.complaint == "oops")
    feed.close()


def test_a_program_that_ignores_its_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powerlab.power.sampling.line_feed._END_S", 0.05)
    feed = program_feed(["/bin/sh", "-c", "trap '' TERM; echo 5; while :; do sleep 0.05; done"], watts)
    assert received(feed) == [5.0]
    feed.close()


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(OSError, match="No such file"):
        program_feed(["/nowhere/tegrastats"], watts)


def stream_of(connect: Callable[[], Feed], **options: float) -> Stream:
    return Stream(connect, "meter", **{"patience_s": PATIENCE_S, "silence_s": PATIENCE_S, **options})


def test_a_session_is_entered_with_the_first_reading_and_gives_all_in_order(pipe: Callable[..., Pipe]) -> None:
    one = pipe()
    one.send("1\n")
    stream = stream_of(lambda: one.feed)
    before_ns = time.monotonic_ns()
    with stream.session():
        taken = list(stream.read("wall"))
        for number in (2, 3, 4):
            one.send(f"{number}\n")
            until(lambda: taken.extend(stream.read("wall")) or len(taken) == number)  # noqa: B023
        assert stream.rails() == ("wall",)
        assert stream.read("wall") == ()
    assert [stamped.value for stamped in taken] == [1.0, 2.0, 3.0, 4.0]
    stamps = [stamped.time_ns for stamped in taken]
    assert stamps == sorted(set(stamps))
    assert before_ns < stamps[0] <= stamps[-1] < time.monotonic_ns()
    assert one.closed == 1


def test_a_clock_that_is_set_meanwhile_does_not_matter(
    pipe: Callable[..., Pipe], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = pipe()
    one.send("1\n")
    stream = stream_of(lambda: one.feed)
    with stream.session():
        first = stream.read("wall")
        monkeypatch.setattr(time, "time", lambda: 0.0)
        monkeypatch.setattr(time, "time_ns", lambda: 0)
        one.send("2\n")
        second: list[Stamped] = []
        until(lambda: second.extend(stream.read("wall")) or second)
    assert second[0].time_ns > first[0].time_ns


def test_outside_a_session_nothing_can_be_read(pipe: Callable[..., Pipe]) -> None:
    one = pipe()
    one.send("1\n")
    stream = stream_of(lambda: one.feed)
    with pytest.raises(ConnectionError, match="not connected"):
        stream.read("wall")
    with stream.session():
        pass
    with pytest.raises(ConnectionError, match="not connected"):
        stream.read("wall")


def test_a_lost_connection_fails_for_the_rest_of_its_session_and_is_never_a_stale_value(
    pipe: Callable[..., Pipe],
) -> None:
    one = pipe()
    one.send("1\n")
    stream = stream_of(lambda: one.feed)
    with stream.session():
        assert [stamped.value for stamped in stream.read("wall")] == [1.0]
        one.hang_up()
        until(lambda: fails(stream))
        for _ in range(2):
            with pytest.raises(ConnectionError, match="ended"):
                stream.read("wall")


def test_the_next_session_connects_anew(pipe: Callable[..., Pipe]) -> None:
    made: list[Pipe] = []

    def connect() -> LineFeed:
        made.append(pipe())
        made[-1].send(f"{len(made)}\n")
        return made[-1].feed

    stream = stream_of(connect)
    for number in (1, 2):
        with stream.session():
            assert [stamped.value for stamped in stream.read("wall")] == [float(number)]
    assert [one.closed for one in made] == [1, 1]


def test_connecting_is_tried_again(pipe: Callable[..., Pipe], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powerlab.power.sampling.stream._RETRY_S", 0.001)
    one = pipe()
    one.send("1\n")
    tries: list[int] = []

    def connect() -> LineFeed:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionRefusedError("nobody there")
        return one.feed

    with stream_of(connect, reconnect_s=PATIENCE_S).session():
        assert len(tries) == 3


@pytest.mark.parametrize("error", [ConnectionRefusedError("nobody there"), PermissionError(13, "Permission denied")])
def test_a_connection_that_fails_is_an_os_error(error: OSError) -> None:
    def connect() -> LineFeed:
        raise error

    reconnect_s = PATIENCE_S if isinstance(error, PermissionError) else 0.0
    with pytest.raises(type(error)), stream_of(connect, reconnect_s=reconnect_s).session():
        pytest.fail("never entered")


def test_no_reading_within_the_patience_says_what_came_instead(pipe: Callable[..., Pipe]) -> None:
    one = pipe()
    one.send("volts only\n")
    with (
        pytest.raises(TimeoutError, match="'volts only'"),
        stream_of(lambda: one.feed, patience_s=0.3).session(),
    ):
        pytest.fail("never entered")
    assert one.closed == 1


def test_silence_is_a_failure(pipe: Callable[..., Pipe]) -> None:
    one = pipe()
    one.send("1\n")
    stream = stream_of(lambda: one.feed, silence_s=0.0)
    with stream.session():
        assert len(stream.read("wall")) == 1
        with pytest.raises(TimeoutError, match="nothing"):
            stream.read("wall")


def test_a_fault_in_a_feed_comes_out_at_the_reader() -> None:
    class Faulty:
        complaint = ""

        def receive(self, timeout_s: float) -> Sequence[Arrival]:
            raise ZeroDivisionError("a fault")

        def close(self) -> None:
            pass

    with pytest.raises(ZeroDivisionError), stream_of(Faulty).session():
        pytest.fail("never entered")


def test_many_readings_that_nobody_takes_are_bounded() -> None:
    stream = stream_of(partial(pytest.fail, "not connected"))
    for moment in range(10_000):
        stream._keep(Arrival(moment, {"wall": 1.0}))
    stream._failure = None
    taken = stream.read("wall")
    assert len(taken) < 10_000
    assert taken[-1].time_ns == 9_999


def channel(read: Callable[[], tuple[Stamped, ...]], session: Callable[[], AbstractContextManager[None]]) -> Poller:
    rail = Rail(
        source="meter",
        name="wall",
        quantity=RailQuantity.POWER,
        resolution=0.0,
        relative_error=0.0,
        update_period_s=0.0,
        provenance=Provenance.MEASURED,
    )
    return Poller([PolledChannel(rail=rail, read=read, session=session)], 0.001)


def test_the_poller_takes_all_that_came_between_two_reads() -> None:
    batches = iter([(Stamped(5, 1.0), Stamped(7, 2.0)), (), (Stamped(7, 9.0), Stamped(11, 3.0))])
    poller = channel(lambda: next(batches, ()), nullcontext)
    poller.start()
    until(lambda: len(poller.samples[0].time_ns) == 3)
    poller.stop()
    samples = poller.samples[0]
    assert (samples.time_ns, samples.value, samples.failed_reads) == ([5, 7, 11], [1.0, 2.0, 3.0], 0)
    assert len(samples.cost_ns) == 3


def test_sampling_has_begun_when_start_returns() -> None:
    opened: list[bool] = []

    @contextmanager
    def slow() -> Iterator[None]:
        time.sleep(0.05)
        opened.append(True)
        yield

    poller = channel(tuple, slow)
    poller.start()
    assert opened == [True]
    poller.stop()


def test_a_session_with_a_fault_does_not_hold_up_the_start() -> None:
    def faulty() -> AbstractContextManager[None]:
        raise ZeroDivisionError("a fault")

    poller = channel(tuple, faulty)
    poller.start()
    with pytest.raises(ZeroDivisionError):
        poller.stop()


def test_a_program_does_not_outlive_a_powerlab_that_was_killed() -> None:
    """Nobody can end it then: it ends by itself when it finds that nobody reads."""
    source = textwrap.dedent(
        """
        import time
        from powerlab.power.sampling.line_feed import program_feed
        loop = "echo $$; while :; do echo 5; sleep 0.02; done"
        feed = program_feed(["/bin/sh", "-c", loop], lambda text: {"pid": float(text)})
        print(round(feed.receive(30)[0].values_w["pid"]), flush=True)
        time.sleep(1000)
        """
    )
    process = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    process.kill()
    process.communicate()
    until(lambda: not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes())
