"""How the device's clock stands to the server's: right whatever the line does, and after somebody has set the clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from powerlab.protocol.messages import ServerTime
from powerlab_agent.client import Client, ServerUnreachableError
from powerlab_agent.clock import EXCHANGES, REFRESH_S, ServerClock

SECOND = 1_000_000_000
DELAYS = st.integers(0, SECOND)


@dataclass
class World:
    """A device and a server whose clocks are known, and a line between them."""

    boot_ns: int = 77 * SECOND
    wall_minus_boot_ns: int = 0
    server_minus_boot_ns: int = 0
    delays: list[tuple[int, int, int]] = field(default_factory=list)
    asked: int = 0

    def ask(self) -> ServerTime:
        there, within, back = self.delays[self.asked % len(self.delays)] if self.delays else (0, 0, 0)
        self.asked += 1
        self.boot_ns += there
        received_ns = self.boot_ns + self.server_minus_boot_ns
        self.boot_ns += within + back
        return ServerTime(received_ns=received_ns, sent_ns=received_ns + within)

    def clock(self) -> ServerClock:
        return ServerClock(self.ask, lambda: self.boot_ns, lambda: self.boot_ns + self.wall_minus_boot_ns)

    @property
    def truth_s(self) -> float:
        return (self.server_minus_boot_ns - self.wall_minus_boot_ns) / 1e9


@given(
    delays=st.lists(st.tuples(DELAYS, DELAYS, DELAYS), min_size=EXCHANGES, max_size=EXCHANGES),
    wall=st.integers(-(10**18), 10**18),
    server=st.integers(-(10**18), 10**18),
    later=st.integers(0, 10**15),
    jump=st.integers(-(10**15), 10**15),
)
def test_the_offset_is_off_by_no_more_than_half_the_best_round_trip(
    delays: list[tuple[int, int, int]], wall: int, server: int, later: int, jump: int
) -> None:
    world = World(wall_minus_boot_ns=wall, server_minus_boot_ns=server, delays=delays)
    clock = world.clock()
    assert clock.offset() is None
    clock.refresh_if_due()
    assert world.asked == EXCHANGES
    best_s = min(there + back for there, _, back in delays) / 1e9
    world.boot_ns += later
    world.wall_minus_boot_ns += jump
    found = clock.offset()
    assert found.uncertainty_s == best_s / 2
    assert abs(found.offset_s - world.truth_s) <= found.uncertainty_s + 1e-6
    assert found.age_s >= later / 1e9


def test_it_is_asked_again_when_it_is_old_and_a_server_that_is_away_costs_nothing() -> None:
    world = World(server_minus_boot_ns=5 * SECOND)
    clock = world.clock()
    clock.refresh_if_due()
    clock.refresh_if_due()
    assert world.asked == EXCHANGES

    def away() -> ServerTime:
        raise ServerUnreachableError("away")

    clock._ask = away
    world.boot_ns += int(REFRESH_S * 1e9)
    clock.refresh_if_due()
    assert clock.offset().age_s >= REFRESH_S


def test_this_machine_agrees_with_a_server_on_it(server: Any) -> None:
    clock = ServerClock(Client(server.url).time)
    clock.refresh_if_due()
    found = clock.offset()
    assert 0 < found.uncertainty_s < 1
    assert abs(found.offset_s) <= found.uncertainty_s + 0.001
