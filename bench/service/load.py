"""Prints what a fleet of simulated agents got from one server."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sqlalchemy import create_engine, text

from bench.service.check import faults
from bench.service.fleet import Load, unleash
from bench.service.ledger import Ledger
from bench.service.server import Server, a_database, running_server
from powerlab.store.database import parse_address

BOUND_S = 1.0
"""The 99th percentile of a lease."""


class Connections(threading.Thread):
    """Counts a PostgreSQL database's connections twice a second."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self._address = address
        self.most = 0
        self.over = threading.Event()

    def run(self) -> None:
        """Count until it is over."""
        if "://" not in self._address:
            return
        engine = create_engine(parse_address(self._address), isolation_level="AUTOCOMMIT")
        counting = text(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        with engine.connect() as connection:
            while not self.over.wait(0.5):
                self.most = max(self.most, int(connection.execute(counting).scalar_one()))
        engine.dispose()


def measure(kind: str, load: Load, lease_s: float) -> int:
    """Let a fleet live at a server and print how it went; returns 1 where a result or the bound was missed.

    The bound is for a server that runs: a job that is submitted while it is away, or while a thousand agents come back
    to it, waits as long as that takes.
    """
    with tempfile.TemporaryDirectory() as folder, a_database(kind, Path(folder)) as address:
        with running_server(address, lease_s) as server:
            counter = Connections(address)
            counter.start()
            began = time.monotonic()
            ledger = asyncio.run(unleash(server, load))
            passed_s = time.monotonic() - began
            counter.over.set()
            counter.join()
            killed = ", the server killed in between" if load.kill else ""
            print(f"\n{load.agents} agents, {load.jobs} jobs in {load.over_s:g} s, {kind}{killed}")
            print(f"load average         {os.getloadavg()[0]:.1f}")
            _print(ledger, server, passed_s, counter.most, killed=load.kill)
        wrong = faults(address, ledger)
    print("exactly once         " + ("every job, run and chunk" if not wrong else "NO: " + "; ".join(wrong[:5])))
    late = float(np.percentile(ledger.leases_s, 99)) > BOUND_S
    return int(bool(wrong) or (late and not load.kill))


def _print(ledger: Ledger, server: Server, passed_s: float, connections: int, *, killed: bool) -> None:
    usage, events = server.usage(), ledger.events
    bound = "" if killed else f" (bound: p99 {BOUND_S:g} s)"
    print(f"lease                {_spread(ledger.leases_s)}{bound}")
    for what, took_s in sorted(ledger.took_s.items()):
        if not what.endswith("/lease"):
            print(f"{what:<36} {_spread(took_s)}")
    print(f"requests             {events['requests'] / passed_s:.0f} /s over {passed_s:.0f} s")
    print(f"server               {usage.server_s / passed_s:.2f} cores, {usage.resident_mb:.0f} MB resident")
    print(f"database             {usage.database_s / passed_s:.2f} cores, {connections} connections at most")
    for name, count in sorted(events.items()):
        print(f"  {name:<24} {count}")


def _spread(seconds: Sequence[float]) -> str:
    p50, p99, most = np.percentile(seconds, [50, 99, 100]) * 1000
    return f"p50 {p50:.0f} ms, p99 {p99:.0f} ms, longest {most:.0f} ms (n = {len(seconds)})"


def main() -> int:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--over", type=float, default=300.0, metavar="S", help="how long submitting takes")
    parser.add_argument("--start", type=float, default=20.0, metavar="S", help="over how long the agents come before")
    parser.add_argument("--lease-s", type=float, default=20.0)
    parser.add_argument("--kill", action="store_true", help="kill the server in between, and start it again")
    parser.add_argument("--database", choices=("postgresql", "sqlite"), default="postgresql")
    args = parser.parse_args()
    load = Load(agents=args.agents, jobs=args.jobs, over_s=args.over, start_s=args.start, kill=args.kill)
    return measure(args.database, load, args.lease_s)


if __name__ == "__main__":
    sys.exit(main())
