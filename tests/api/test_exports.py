"""Exports in three formats hold the same values, and those that were stored."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from pyarrow import parquet

from powerlab.cli import main
from powerlab.domain.power import Part, RailQuantity, Trace
from powerlab.domain.run import Run, Verdict
from powerlab.protocol.chunks import split
from powerlab.protocol.export import FIGURE_COLUMNS, Column, figure_rows
from powerlab.protocol.messages import ChunkUpload, Lease, RunUpload
from powerlab.protocol.trace_export import TRACE_COLUMNS, UNITS
from server_examples import COUNTER, RAIL, make_trace, runs_of

KINDS = {"string": str, "int64": int, "double": float}


@pytest.fixture
def runs(agent: Any, sweep_id: str, lease: Lease) -> list[Run]:
    """Runs with intervals and without, and one without any figure."""
    first, second, third, *_ = runs_of(sweep_id)
    kept = [first, replace(second, metrics=(), total=None, verdict=Verdict.FAILED), third]
    for run in kept:
        reply = agent.send("PUT", f"/runs/{run.id}", RunUpload(fencing_token=lease.fencing_token, run=run))
        assert reply.status_code == 201, reply.text
    return kept


@pytest.fixture
def traces(agent: Any, runs: list[Run], lease: Lease) -> dict[str, list[Trace]]:
    """Traces of two runs, in several chunks, of several parts and quantities."""
    latency = replace(RAIL, name="queries", source="latency", quantity=RailQuantity.LATENCY)
    kept = {
        runs[0].id: [make_trace(COUNTER, 700, seed=1), replace(make_trace(RAIL, 50), part=Part.IDLE_BEFORE)],
        runs[2].id: [make_trace(latency, 900, seed=2)],
    }
    for run_id, found in kept.items():
        for trace in found:
            for chunk in split(trace, 300):
                message = ChunkUpload(fencing_token=lease.fencing_token, chunk=chunk)
                assert agent.send("PUT", f"/runs/{run_id}/traces/chunks", message).status_code == 201
    return kept


def ask(client: TestClient, what: str, format_: str, **fields: str) -> bytes:
    reply = client.get(f"/api/v1/exports/{what}", params={"format": format_, **fields})
    assert reply.status_code == 200, reply.text
    assert f"powerlab-{what}.{format_}" in reply.headers["Content-Disposition"]
    return reply.content


def from_csv(content: bytes, columns: tuple[Column, ...]) -> list[tuple[Any, ...]]:
    header, *rows = csv.reader(io.StringIO(content.decode(), newline=""))
    assert header == [column.name for column in columns]
    return [
        tuple(
            None if column.nullable and cell == "" else KINDS[column.kind](cell)
            for column, cell in zip(columns, row, strict=True)
        )
        for row in rows
    ]


def from_parquet(content: bytes, columns: tuple[Column, ...]) -> list[tuple[Any, ...]]:
    table = parquet.read_table(pa.BufferReader(content))
    assert table.schema.names == [column.name for column in columns]
    assert [str(kind) for kind in table.schema.types] == [column.kind for column in columns]
    assert [field.nullable for field in table.schema] == [column.nullable for column in columns]
    return [tuple(row.values()) for row in table.to_pylist()]


def test_runs_are_the_same_in_csv_and_parquet(client: TestClient, runs: list[Run]) -> None:
    wanted = list(figure_rows(sorted(runs, key=lambda run: run.id)))  # they arrived at the same moment
    assert len(wanted) == 2 * len(runs[0].metrics) + 1
    assert from_csv(ask(client, "runs", "csv"), FIGURE_COLUMNS) == wanted
    assert from_parquet(ask(client, "runs", "parquet"), FIGURE_COLUMNS) == wanted
    failed = list(figure_rows(runs[1:2]))
    assert from_parquet(ask(client, "runs", "parquet", verdict="failed"), FIGURE_COLUMNS) == failed


def test_traces_are_those_that_were_recorded(
    client: TestClient, runs: list[Run], traces: dict[str, list[Trace]], sweep_id: str
) -> None:
    rows = from_csv(ask(client, "traces", "csv", sweep_id=sweep_id), TRACE_COLUMNS)
    assert from_parquet(ask(client, "traces", "parquet", sweep_id=sweep_id), TRACE_COLUMNS) == rows
    documents = [json.loads(line) for line in ask(client, "traces", "ndjson", sweep_id=sweep_id).splitlines()]
    assert [
        (*list(document.values())[:-2], time_ns, value)
        for document in documents
        for time_ns, value in zip(document["time_ns"], document["value"], strict=True)
    ] == rows
    assert len(rows) == 700 + 50 + 900
    for run_id, found in traces.items():
        for trace in found:
            rail = trace.rail
            start = (run_id, sweep_id, trace.part.value, rail.source, rail.name, rail.quantity.value)
            start += (UNITS[rail.quantity], rail.provenance.value)
            mine = [row[-2:] for row in rows if row[:-2] == start]
            assert mine == list(zip(trace.time_ns.tolist(), trace.value.tolist(), strict=True))
    only = from_csv(ask(client, "traces", "csv", run_id=runs[2].id[:30]), TRACE_COLUMNS)
    assert only == [row for row in rows if row[0] == runs[2].id]


@pytest.mark.parametrize("format_", ["csv", "ndjson", "parquet"])
def test_nothing_stored_gives_a_file_of_the_right_form(client: TestClient, sweep_id: str, format_: str) -> None:
    for what, columns in (("runs", FIGURE_COLUMNS), ("traces", TRACE_COLUMNS)):
        content = ask(client, what, format_, sweep_id=sweep_id)
        if format_ == "ndjson":
            assert content == b""
        else:
            assert (from_csv if format_ == "csv" else from_parquet)(content, columns) == []


@pytest.mark.campaign
def test_wishes_that_cannot_be_met_are_problems(client: TestClient, runs: list[Run]) -> None:
    for fields, status in (({}, 422), ({"run_id": "none"}, 404), ({"sweep_id": "none"}, 404)):
        assert client.get("/api/v1/exports/traces", params=fields).status_code == status
    assert client.get("/api/v1/exports/runs", params={"format": "xlsx"}).status_code == 422


@pytest.mark.usefixtures("traces")
def test_the_command_line_writes_the_same(
    client: TestClient, store: Any, sweep_id: str, tmp_path: Path, capsysbinary: Any
) -> None:
    for what, words in (("runs", ()), ("traces", ("--traces", "--sweep", sweep_id))):
        for format_ in ("csv", "ndjson", "parquet"):
            wanted = ask(client, what, format_, sweep_id=sweep_id)
            source = ("--database", store.address, "--format", format_)
            output = tmp_path / f"{what}.{format_}"
            assert main(["export", *words, *source, "--output", str(output)]) == 0
            assert main(["export", *words, *source]) == 0
            assert output.read_bytes() == capsysbinary.readouterr().out
            if format_ == "parquet":
                assert parquet.read_table(output).equals(parquet.read_table(pa.BufferReader(wanted)))
            else:
                assert output.read_bytes() == wanted
    for words in ("--run x", "--traces", "--traces --run x --model y", "--traces --run x"):
        assert main(["export", "--database", store.address, *words.split()]) == 2
        assert capsysbinary.readouterr().err.count(b"\n") == 1


def test_floats_come_back_to_the_last_bit(agent: Any, client: TestClient, runs: list[Run], lease: Lease) -> None:
    values = np.array([5e-324, 0.1, 1 / 3, 1e15, 123456789.123456789, -0.0])
    trace = Trace(rail=RAIL, time_ns=np.arange(6) + 2**62, value=values, read_cost_ns=0)
    (chunk,) = split(trace)
    message = ChunkUpload(fencing_token=lease.fencing_token, chunk=chunk)
    assert agent.send("PUT", f"/runs/{runs[0].id}/traces/chunks", message).status_code == 201
    for format_, read in (("csv", from_csv), ("parquet", from_parquet)):
        rows = read(ask(client, "traces", format_, run_id=runs[0].id), TRACE_COLUMNS)
        assert np.array([row[-1] for row in rows]).tobytes() == values.tobytes()
        assert [row[-2] for row in rows] == trace.time_ns.tolist()


def test_the_page_names_every_column_with_its_type() -> None:
    page = (Path(__file__).parents[2] / "docs" / "exports.md").read_text(encoding="utf-8")
    for column in (*FIGURE_COLUMNS, *TRACE_COLUMNS):
        said = re.escape(f"| `{column.name}` | {column.kind}{', may be missing' if column.nullable else ''} |")
        assert re.search(said, page), column
