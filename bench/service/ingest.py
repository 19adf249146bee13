"""How many samples a second one server stores: real chunks over HTTP, encoded beforehand, into both databases.

    PYTHONPATH=tests:tests/support:bench python -m service.ingest [--seconds 10] [--database postgresql]

Each way of sending is a run of its own. What the clients do while the clock runs is to send bytes that are made
already, from one process; its share and the server's stand beside each figure, of the sending alone.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from bench.service.http import Answer, Connection
from bench.service.recordings import CHUNKS, new_run
from bench.service.server import Server, a_database, cpu_s, running_server, wait_until_idle
from powerlab.domain.power import Trace
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.chunks import MAX_SAMPLES, split
from powerlab.protocol.messages import (
    ChunksUpload,
    ChunkUpload,
    EnrolmentCode,
    EnrolReply,
    EnrolRequest,
    LeaseReply,
    LeaseRequest,
    RunUpload,
    SweepRequest,
    TraceChunk,
)
from powerlab.protocol.records import SweepRecord
from powerlab.protocol.wire import decode, encode
from recorded_run import rail
from server_examples import capabilities, device

BOUND_PER_S = 200_000
_CONNECTIONS = 8
"""Devices that send at the same time; four do not keep a server on two cores busy."""
_PLAN = SweepPlan(models=("resnet50",), threads=(1,), repeats=10_000)


@dataclass(frozen=True, slots=True)
class Way:
    """One way of sending: the requests of a run, each of them some chunks."""

    name: str
    requests: tuple[tuple[TraceChunk, ...], ...]

    @property
    def samples(self) -> int:
        """Samples of a run."""
        return sum(chunk.sample_count for chunks in self.requests for chunk in chunks)


def ways() -> tuple[Way, ...]:
    """Return the ways: long recordings, a usual run at once, and the same chunk by chunk."""
    steps = np.random.default_rng(3).integers(990_000, 1_010_000, MAX_SAMPLES)
    time_ns = np.cumsum(steps, dtype=np.int64)
    power_w = np.round(np.random.default_rng(4).normal(12.0, 0.4, MAX_SAMPLES), 3)
    (long,) = split(Trace(rail=rail("RAIL_0"), time_ns=time_ns, value=power_w, read_cost_ns=20_000))
    return (
        Way("a minute at 1 kHz a request", ((long,),)),
        Way("a run of 5 s, 6 rails, a request", (CHUNKS,)),
        Way("the same, a chunk a request", tuple((chunk,) for chunk in CHUNKS)),
    )


@dataclass(slots=True)
class _Sender:
    """A device that holds a job and sends runs as fast as the server takes them."""

    connection: Connection
    sweep_id: str
    token: int
    sent: int = 0

    async def send_until(self, deadline: float, way: Way, ended: asyncio.Event) -> None:
        bodies = [self._body(chunks) for chunks in way.requests]
        while not ended.is_set():
            run = new_run(self.sweep_id, _PLAN.points()[0], self.sent)
            self.sent += 1
            _stored(await self.connection.ask("PUT", f"/runs/{run.id}", RunUpload(fencing_token=self.token, run=run)))
            for method, body in bodies:
                _stored(await self.connection.ask(method, f"/runs/{run.id}/traces/chunks", body))
            if time.monotonic() > deadline:
                ended.set()

    def _body(self, chunks: Sequence[TraceChunk]) -> tuple[str, bytes]:
        if len(chunks) == 1:
            return "PUT", encode(ChunkUpload(fencing_token=self.token, chunk=chunks[0]))
        return "POST", encode(ChunksUpload(fencing_token=self.token, chunks=tuple(chunks)))


def _stored(answer: Answer) -> None:
    if answer.status != 201:
        raise RuntimeError(f"the server did not store it: {answer.body!r}")


async def _senders(server: Server) -> list[_Sender]:
    person = Connection(server.url)
    found = []
    for _ in range(_CONNECTIONS):
        code = decode((await person.ask("POST", "/enrolment-codes", {})).body, EnrolmentCode).code
        name = f"board-{time.monotonic_ns()}"
        asked = EnrolRequest(code=code, device=device(name), capabilities=capabilities())
        who = decode((await person.ask("POST", "/agents", asked)).body, EnrolReply)
        request = SweepRequest(device_id=who.device_id, plan=_PLAN)
        sweep = decode((await person.ask("POST", "/sweeps", request)).body, SweepRecord)
        connection = Connection(server.url, who.token)
        lease = decode((await connection.ask("POST", "/jobs/lease", LeaseRequest())).body, LeaseReply).lease
        assert lease is not None
        connection.cut()  # it is made anew when it is needed: the server closes what says nothing for 5 s
        found.append(_Sender(connection, sweep.id, lease.fencing_token))
    person.cut()
    return found


async def _send(senders: Sequence[_Sender], way: Way, seconds: float) -> None:
    ended = asyncio.Event()
    deadline = time.monotonic() + seconds
    await asyncio.gather(*(one.send_until(deadline, way, ended) for one in senders))
    for one in senders:
        one.connection.cut()


def measure(kind: str, seconds: float) -> bool:
    """Print the rate of each way into one kind of database; returns whether the bound holds for whole runs."""
    own = psutil.Process()
    print(f"\n{kind}: samples stored a second; load average {os.getloadavg()[0]:.1f}")
    rates = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        a_database(kind, Path(folder)) as address,
        running_server(address) as server,
    ):
        for way in ways():
            senders = asyncio.run(_senders(server))
            wait_until_idle(server)
            before, own_before_s, began = server.usage(), cpu_s(own), time.monotonic()
            asyncio.run(_send(senders, way, seconds))
            passed_s = time.monotonic() - began
            after, own_s = server.usage(), cpu_s(own) - own_before_s
            rates[way.name] = sum(one.sent for one in senders) * way.samples / passed_s
            shares = [after.server_s - before.server_s, after.database_s - before.database_s, own_s]
            said = ", ".join(
                f"{name} {used_s / passed_s:.2f}"
                for name, used_s in zip(("server", "database", "clients"), shares, strict=True)
            )
            per_cpu = rates[way.name] * passed_s / shares[0]
            print(f"  {way.name:<34} {rates[way.name]:>10,.0f} /s   cores: {said}; {per_cpu:,.0f} a core-s of server")
    slowest = min(rate for name, rate in rates.items() if "chunk a request" not in name)
    print(f"  bound: {BOUND_PER_S:,} /s, {'held' if slowest >= BOUND_PER_S else 'MISSED'} by whole runs and recordings")
    return slowest >= BOUND_PER_S


def main() -> int:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each way (default: 10)")
    parser.add_argument("--database", choices=("postgresql", "sqlite", "both"), default="both")
    args = parser.parse_args()
    kinds = ("postgresql", "sqlite") if args.database == "both" else (args.database,)
    held = [measure(kind, args.seconds) for kind in kinds]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
