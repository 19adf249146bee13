"""Identifiers of what this machine has measured, looked up while someone types.

A shell asks at every press of the tab key, so this reads the local database directly: loading the database toolkit
would take longer than people wait.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing

from powerlab.state_dir import state_dir

_MOST = 100
_QUERIES = {
    "sweeps": "SELECT sweep.id, plan, device.name, substr(sweep.created_at, 1, 10) FROM sweep "
    "JOIN device ON device.id = sweep.device_id ORDER BY sweep.created_at DESC LIMIT ?",
    "runs": "SELECT run.id, plan, 'repeat ' || (repeat + 1), substr(started_at, 1, 10) FROM run "
    "JOIN sweep ON sweep.id = run.sweep_id ORDER BY received_at DESC LIMIT ?",
    "baselines": "SELECT baseline_sweep.name, plan, device.name, substr(max(set_at), 1, 10) FROM baseline_sweep "
    "JOIN sweep ON sweep.id = sweep_id JOIN device ON device.id = sweep.device_id "
    "GROUP BY baseline_sweep.name ORDER BY max(set_at) DESC LIMIT ?",
}


def stored_words(kind: str) -> Iterator[str]:
    """Yield the newest identifiers or names, each with a description behind a tab; none where a server is read."""
    if os.environ.get("POWERLAB_SERVER"):
        return
    database = state_dir() / "powerlab.db"
    if database.is_file():
        yield from _in_database(f"{database.as_uri()}?mode=ro", kind)
    elif kind == "sweeps":
        for path in sorted((state_dir() / "sweeps").glob("*.ndjson"), key=lambda path: -path.stat().st_mtime)[:_MOST]:
            yield path.stem


def _in_database(address: str, kind: str) -> Iterator[str]:
    with closing(sqlite3.connect(address, uri=True, timeout=0.1)) as connection:
        for id_, plan, name, day in connection.execute(_QUERIES[kind], (_MOST,)):
            yield f"{id_}\t{', '.join(json.loads(plan)['models'])}, {name}, {day}"
