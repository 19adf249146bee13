"""The benchmark of trace stores: what its table says of homes that are really filled and asked."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench.database import trace_stores

pytestmark = pytest.mark.campaign

FIGURES = {"bytes_a_sample", "samples_per_s", "window of 1 s, ms", "1000 points, ms", "whole run, ms"}


def test_every_home_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "--runs",
        "2",
        "--seconds",
        "4",
        "--traces",
        f"file://{tmp_path}/other",
        "--json",
        str(tmp_path / "t.json"),
    ]
    monkeypatch.setattr(sys, "argv", ["trace_stores.py", *words])
    assert trace_stores.main() == 0
    table = json.loads((tmp_path / "t.json").read_text())
    assert set(table) == {"database", "files", "compacted", f"file://{tmp_path}/other"}
    for row in table.values():
        assert set(row) == FIGURES
        assert all(value > 0 for value in row.values())
    assert 2 < table["database"]["bytes_a_sample"] < 16
    assert table["compacted"]["bytes_a_sample"] < table["files"]["bytes_a_sample"]
    assert table["files"]["bytes_a_sample"] == pytest.approx(table[f"file://{tmp_path}/other"]["bytes_a_sample"])
    assert "(1.00x)" in capsys.readouterr().out


def test_the_made_board_gives_what_can_be_stored() -> None:
    traces = list(trace_stores.board(3, seed=1))
    assert len({trace.rail for trace in traces}) == len(traces) == 9
    for trace in traces:
        assert (trace.time_ns[1:] > trace.time_ns[:-1]).all()
    assert [other.value.tobytes() for other in trace_stores.board(3, seed=1)] == [
        trace.value.tobytes() for trace in traces
    ]
