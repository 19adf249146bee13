"""How fast a server answers whose database holds a million runs and a thousand million samples.

    python -m bench.database.big_database [--runs 1000000] [--samples 1000000000] [--times 20]
        [--keep DATABASE | --sqlite]

Loads the past of a made-up fleet into a PostgreSQL of its own (which must be installed; 16 GB, about 15 minutes),
starts a server over it, asks for every list, page, chart, trace window and export, and prints how long answers took:
median and 95th percentile, first byte of streams. The bound is 200 ms at the 95th percentile. Chunks of samples are
drawn from a few hundred that were really encoded; what is asked of them does not depend on their being different.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import numpy as np
import uvicorn
from sqlalchemy import text

from bench.database.bulk.filling import Filler
from bench.database.bulk.fleet import DAYS, START
from bench.database.bulk.loading import Loader
from bench.database.bulk.questions import Question, group_of, known, questions
from powerlab.cli.commands.serve.server import compose, settle
from powerlab.store import Store, open_store
from powerlab.store.database import WRITE_OPTION
from powerlab.store.maintenance.partitions import make_months, month_of
from powerlab.store.maintenance.summary_worker import sum_up
from powerlab_api.settings import Settings

BOUND_MS = 200.0
_POSTGRES = ("fsync=off", "full_page_writes=off", "max_wal_size=8GB", "shared_buffers=1GB", "max_connections=100")


def fill(store: Store, run_count: int, sample_count: int) -> int:
    """Load the fleet, into the months of its past, and do what a server does beside; returns the number of samples."""
    make_months(store.engine, sorted({month_of(START + timedelta(days=day)) for day in range(DAYS + 2)}))
    with store.engine.connect().execution_options(**{WRITE_OPTION: True}) as connection:
        filler, told_s = Filler(Loader(connection), run_count, sample_count), time.monotonic()
        for stored in filler.fill():
            if time.monotonic() - told_s > 20:
                print(f"  {stored:,} runs, {filler.sample_count:,} samples", file=sys.stderr, flush=True)
                told_s = time.monotonic()
    print(f"  {sum_up(store):,} sweeps summarised", file=sys.stderr, flush=True)
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE" if store.engine.dialect.name == "postgresql" else "ANALYZE"))
    return filler.sample_count


@contextmanager
def served(store: Store) -> Iterator[str]:
    """Run a server over the database; yields its address."""
    server = uvicorn.Server(uvicorn.Config(compose(store, Settings()), port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    settle()
    try:
        yield f"127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


class Asker:
    """Asks a server over one connection."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._connection = http.client.HTTPConnection(address, timeout=120)

    def ask(self, path: str, *, stream: bool = False) -> tuple[float, bytes]:
        """Return how long an answer took, in ms, and the answer; of a stream only the first byte is waited for."""
        start_s = time.perf_counter()
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        body = answer.read(1) if stream else answer.read()
        took_ms = 1e3 * (time.perf_counter() - start_s)
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {body[:300]!r}")
        if stream:
            self._connection.close()
        return took_ms, body


def deep_cursors(asker: Asker) -> dict[str, str]:
    """Return by list a cursor near its end."""
    newest = json.loads(asker.ask("/api/v1/sweeps?limit=1")[1])["items"][0]
    late = {
        "runs": f"received_from={quote(newest['created_at'])}", "sweeps": "created_to=2025-09-20T00:00:00Z",
        "audit-events": "before=2025-09-20T00:00:00Z",
    }  # fmt: skip
    found = {}
    for name, words in late.items():
        found[name] = json.loads(asker.ask(f"/api/v1/{name}?limit=1&{words}")[1])["next_cursor"]
    found["jobs"] = found["sweeps"]
    found["points"] = json.loads(asker.ask(f"/api/v1/points?limit=1&sweep_id={newest['id']}")[1])["next_cursor"]
    return found


def measured(asker: Asker, asked: Sequence[Question], times: int) -> dict[str, list[float]]:
    """Ask everything so often, each time of something else, the questions in turn."""
    dice = random.Random(1)  # noqa: S311 - nothing secret
    took: dict[str, list[float]] = {one.name: [] for one in asked}
    for one in asked:
        print(f"  {one.name}", end="\r", file=sys.stderr)
        for _ in range(times):
            took[one.name].append(asker.ask(one.path(dice), stream=one.stream)[0])
    return took


def report(took: dict[str, list[float]], groups: Mapping[str, str]) -> list[str]:
    """Print the questions, the slowest first, and a line for each group; returns what was too slow."""
    rows = sorted(((np.percentile(ms, 95), np.median(ms), name) for name, ms in took.items()), reverse=True)
    print(f"{'question':<52}{'p50 ms':>9}{'p95 ms':>9}")
    for p95, p50, name in rows:
        print(f"{name:<52}{p50:>9.1f}{p95:>9.1f}{'  too slow' if p95 > BOUND_MS else ''}")
    print(f"\n{'group':<28}{'questions':>10}{'within':>8}{'p50 ms':>9}{'p95 ms':>9}{'highest p95':>13}")
    for group in sorted(set(groups.values())):
        of_group = [(p95, p50) for p95, p50, name in rows if groups[name] == group]
        within = sum(p95 <= BOUND_MS for p95, _ in of_group)
        p95s, p50s = zip(*of_group, strict=True)
        middle = f"{np.median(p50s):>9.1f}{np.median(p95s):>9.1f}{max(p95s):>13.1f}"
        print(f"{group:<28}{len(of_group):>10}{within:>8}{middle}")
    return [name for p95, _, name in rows if p95 > BOUND_MS]


@contextmanager
def database(*, sqlite: bool, keep: str | None) -> Iterator[str]:
    """Yield the address of an empty database, or of the one that was kept."""
    if keep is not None:
        yield keep
    elif sqlite:
        with tempfile.TemporaryDirectory(prefix="powerlab-big-") as folder:
            yield f"{folder}/powerlab.db"
    else:
        sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
        from postgres_cluster import postgres_cluster

        with postgres_cluster(_POSTGRES) as address:
            yield address


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000_000, help="runs to load (default: 1000000)")
    parser.add_argument("--samples", type=int, default=1_000_000_000, help="samples, about (default: 1000000000)")
    parser.add_argument("--times", type=int, default=20, help="how often each question is asked (default: 20)")
    parser.add_argument("--only", default="", metavar="PATTERN", help="ask only questions whose name matches")
    parser.add_argument("--keep", metavar="DATABASE", help="a database of your own, which is filled where it is empty")
    parser.add_argument("--sqlite", action="store_true", help="SQLite instead of PostgreSQL")
    args = parser.parse_args(arguments)
    with database(sqlite=args.sqlite, keep=args.keep) as address:
        store = open_store(address)
        with store.session() as session:
            empty = session.scalar(text("SELECT count(*) FROM device")) == 0
        if empty:
            start_s = time.monotonic()
            count = fill(store, args.runs, args.samples)
            print(f"loaded {args.runs:,} runs and {count:,} samples in {time.monotonic() - start_s:.0f} s")
        with store.session() as session:
            there = known(session)
        with served(store) as where:
            asker = Asker(where)
            asked = [one for one in questions(there, deep_cursors(asker)) if re.search(args.only, one.name)]
            for one in asked:  # what a server loads with its first stream of a kind is no question to the database
                if one.stream:
                    asker.ask(one.path(random.Random(0)), stream=True)  # noqa: S311 - nothing secret
            groups = {one.name: group_of(one.path(random.Random(0))) for one in asked}  # noqa: S311 - nothing secret
            slow = report(measured(asker, asked, args.times), groups)
        store.close()
    print(f"{len(asked) - len(slow)} of {len(asked)} questions within {BOUND_MS:g} ms at the 95th percentile")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
