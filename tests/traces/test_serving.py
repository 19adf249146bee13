"""Traces in files as a user meets them: the server, its command line, and what a server does every hour."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from clickhouse_over_http import PASSWORD, USER
from powerlab import cli
from powerlab.store import open_store
from powerlab.store.errors import UnavailableError
from powerlab.store.traces import compaction_worker
from powerlab.store.traces.compaction_worker import kept_compact
from powerlab.store.traces.object_storage import open_objects
from powerlab.store.traces.query_engines import open_engine
from powerlab_api.app import create_app
from server_examples import RAIL, Clock, make_trace
from trace_lab import Lab, lab_with

SAMPLES = 900


def test_the_api_reads_files_as_it_reads_the_database(filed: Lab) -> None:
    trace = make_trace(RAIL, SAMPLES)
    assert all(filed.send(0, trace))
    client = TestClient(create_app(filed.store), base_url="http://127.0.0.1")
    (found,) = client.get(f"/api/v1/runs/{filed.run_ids[0]}/traces", params={"points": 100_000}).json()
    assert (found["time_ns"], found["value"]) == (trace.time_ns.tolist(), trace.value.tolist())
    (short,) = client.get(f"/api/v1/runs/{filed.run_ids[0]}/traces", params={"points": 50}).json()
    assert len(short["value"]) <= 50
    assert max(short["value"]) == trace.value.max()
    lines = client.get("/api/v1/exports/traces", params={"run_id": filed.run_ids[0]}).text.splitlines()
    assert lines[1].endswith(f"{trace.time_ns[0]},{float(trace.value[0])!r}")
    assert len(lines) == 1 + SAMPLES


def test_storage_that_is_away_is_said_so_that_agents_try_again(filed: Lab) -> None:
    assert all(filed.send(0, make_trace(RAIL, 100)))
    filed.files.objects.delete(filed.keys)
    answer = TestClient(create_app(filed.store), base_url="http://127.0.0.1").get(
        f"/api/v1/runs/{filed.run_ids[0]}/traces"
    )
    assert answer.status_code == 503
    assert answer.json()["type"].endswith("no-traces")
    assert "try again later" in answer.json()["detail"]


def test_moving_and_compacting_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    database, home = str(tmp_path / "lab.db"), f"file://{tmp_path}/traces"
    store = open_store(database, Clock())
    lab = lab_with(store)
    for run in range(3):
        assert all(lab.send(run, make_trace(RAIL, SAMPLES, seed=run)))
    store.close()
    monkeypatch.setenv("POWERLAB_DATABASE", database)
    assert cli.main(["traces", "move", "--traces", home]) == cli.EXIT_OK
    assert f"moved the traces of 3 runs to {tmp_path}/traces: 9 chunks, 2700 samples" in capsys.readouterr().out
    monkeypatch.setenv("POWERLAB_TRACES", home)
    assert cli.main(["traces", "compact", "--grace", "0"]) == cli.EXIT_OK
    assert "3 files merged into 1, 0 deleted" in capsys.readouterr().out
    assert cli.main(["traces", "compact", "--grace", "0"]) == cli.EXIT_OK
    assert "0 files merged into 0, 3 deleted" in capsys.readouterr().out
    export = ["export", "--traces", "--run", lab.run_ids[1], "--database", database]
    assert cli.main([*export, "--output", str(tmp_path / "out.csv")]) == cli.EXIT_OK
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 1 + SAMPLES
    monkeypatch.delenv("POWERLAB_TRACES")
    for wrong, words in (
        (["traces", "compact"], "no trace store for files is configured"),
        (["traces", "compact", "--traces", home, "--grace", "-1"], "invalid --grace -1.0"),
        (["traces", "move", "--traces", home, "--database", str(tmp_path / "none.db")], "there is no database"),
        (export, "say where to with --traces"),
    ):
        assert cli.main(wrong) == cli.EXIT_USAGE
        assert words in capsys.readouterr().err


def test_a_server_puts_small_files_together_by_itself(filed: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(3):
        assert all(filed.send(seed, make_trace(RAIL, SAMPLES, seed)))
    done = threading.Event()
    logged: list[str] = []
    monkeypatch.setattr(compaction_worker._log, "warning", lambda text, error: (logged.append(str(error)), done.set()))
    with kept_compact(filed.store, period_s=0.01):
        while not any("merged-" in key for key in filed.keys):
            assert not done.wait(0.02), logged
        folder = Path(filed.files.objects.root)
        folder.rename(folder.with_name("away"))
        folder.write_text("in the way")
        assert done.wait(60)
    assert "try again later" in logged[0]


def test_clickhouse_that_is_away_or_refuses_is_said(tmp_path: Path, clickhouse: str) -> None:
    objects = open_objects(f"file://{tmp_path}")
    away = open_engine("clickhouse://127.0.0.1:9", objects)
    with pytest.raises(UnavailableError, match="cannot be reached"):
        away.ask(["a.parquet"], "SELECT 1 FROM {source}")
    host = clickhouse.rpartition("@")[2]
    stranger = open_engine(f"clickhouse://{USER}:wrong@{host}", objects)
    with pytest.raises(UnavailableError, match=r"403: .*Authentication failed") as told:
        stranger.ask(["a.parquet"], "SELECT 1 FROM {source}")
    assert PASSWORD not in str(told.value)
    with pytest.raises(UnavailableError, match="cannot answer"):
        open_engine(clickhouse, objects).ask(["gone.parquet"], "SELECT count() FROM {source}")


def test_a_cluster_is_asked_as_a_cluster(tmp_path: Path) -> None:
    objects = open_objects("s3://lab/prefix?endpoint=http://storage:9000")
    asked = open_engine("clickhouse://host?cluster=big&tls=1", objects)
    assert asked.address == "https://host:8123/"  # type: ignore[attr-defined]
    source = asked._source(["a.parquet", "b.parquet"])  # type: ignore[attr-defined]
    assert source == "s3Cluster('big', 'http://storage:9000/lab/prefix/{a.parquet,b.parquet}', 'Parquet')"
    elsewhere = open_engine("clickhouse://host?files=/traces/", open_objects(f"file://{tmp_path}"))
    assert elsewhere._source(["a.parquet"]) == "file('/traces/a.parquet', 'Parquet')"  # type: ignore[attr-defined]


def test_the_question_in_the_page_is_answered_by_both_engines(filed: Lab, clickhouse: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "guides" / "scale.md").read_text(encoding="utf-8")
    (question,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    question = re.sub(r"s3\(.*?\)", "{source}", question)
    trace = make_trace(RAIL, SAMPLES)
    assert all(filed.send(0, trace))
    root = filed.files.objects.root.replace("'", "''")
    duck, cluster = (open_engine(engine, filed.files.objects) for engine in (None, clickhouse))
    by_duck = question.replace("{source}", f"read_parquet('{root}/month=*/*/*.parquet')")
    for answer in (duck.ask([], by_duck), cluster.ask(["month=*/*/*.parquet"], question)):
        (row,) = answer.to_pylist()
        assert (row["month"], row["rail"], row["provenance"]) == ("2026-01", RAIL.name, "measured")
        assert row["sample_count"] == SAMPLES
        assert row["mean_w"] == pytest.approx(trace.value.mean())
