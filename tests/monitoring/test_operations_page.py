"""The page for whoever runs powerlab: it names every metric and alert, and its commands work."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
from pathlib import Path

import pytest

from postgres_cluster import new_database, postgres_cluster, postgres_program
from powerlab.store import Store, open_store
from powerlab.store.reads import queries
from powerlab.store.reads.fleet import read_fleet
from prometheus_server import SHIPPED
from server_database import add_device, fill

DASHBOARDS = sorted((SHIPPED.parent / "grafana" / "dashboards").glob("*.json"))


def section(page: str, title: str) -> str:
    """Return a part of the page, up to the next heading of its level or a higher one."""
    level, _, rest = page.partition(f"# {title}\n")
    marks = len(level) - len(level.rstrip("#")) + 1
    return re.split(rf"^#{{1,{marks}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def named_in(table: str) -> set[str]:
    """Return what the first column of a table names."""
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_the_page_names_every_metric_of_a_server_and_no_other(
    operations_page: str, server_metrics: dict[str, set[str]]
) -> None:
    assert named_in(section(operations_page, "Metrics of a server")) == set(server_metrics)


def test_the_page_names_every_alert_and_no_other(operations_page: str) -> None:
    rules = (SHIPPED / "alerts.yml").read_text(encoding="utf-8")
    assert named_in(section(operations_page, "Alerts")) == set(re.findall(r"- alert: (\w+)", rules))


def command(page: str, beginning: str) -> str:
    """Return the one command of the page that begins so."""
    (found,) = re.findall(rf"^\$ ({re.escape(beginning)}.*)$", page, re.MULTILINE)
    return str(found)


def carry_out(line: str, folder: Path, **environment: str) -> None:
    programs = str(Path(postgres_program("pg_restore")).parent)
    path = f"{programs}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-ec", line],
        cwd=folder,
        env={**os.environ, **environment, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def everything(store: Store) -> tuple[object, ...]:
    with store.session() as session:
        runs = [run for _, run in queries.stream_runs(session, queries.RunFilter())]
        traces = [trace.value.tolist() for run in runs for trace in queries.recorded(session, run.id)]
        return runs, traces, read_fleet(session, store.clock())


@pytest.mark.campaign
def test_postgresql_is_backed_up_and_restored_by_the_page_s_commands(operations_page: str, tmp_path: Path) -> None:
    with postgres_cluster() as cluster:
        one, other = new_database(cluster), new_database(cluster)
        fill(one)
        carry_out(command(operations_page, "pg_dump"), tmp_path, POWERLAB_DATABASE=one)
        carry_out(command(operations_page, "pg_restore"), tmp_path, RESTORED_DATABASE=other)
        before, after = open_store(one), open_store(other)
        assert everything(after) == everything(before)
        fill(other, names=("board-3",))  # and it goes on
        before.close()
        after.close()


def test_sqlite_is_backed_up_by_the_page_s_command_while_it_is_written(operations_page: str, tmp_path: Path) -> None:
    fill(str(tmp_path / "powerlab.db"))
    store = open_store(tmp_path / "powerlab.db")
    add_device(store, "board-3")
    with store.session() as reading:  # somebody uses it meanwhile, and the newest still lies in the log beside it
        read_fleet(reading, store.clock())
        assert (tmp_path / "powerlab.db-wal").stat().st_size > 0
        carry_out(command(operations_page, "python3 -c"), tmp_path)
    with sqlite3.connect(tmp_path / "powerlab-backup.db") as copy:
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    copy.close()
    after = open_store(tmp_path / "powerlab-backup.db")
    assert everything(after) == everything(store)
    store.close()
    after.close()


@pytest.mark.parametrize("path", [SHIPPED / "alerts.yml", *DASHBOARDS], ids=lambda path: path.name)
def test_what_is_asked_for_is_shown_by_somebody(path: Path, server_metrics: dict[str, set[str]]) -> None:
    known = {name for names in server_metrics.values() for name in names}
    asked = set(re.findall(r"\bpowerlab_(?!agent_)\w+", path.read_text(encoding="utf-8")))
    assert asked
    assert asked - known == set()
