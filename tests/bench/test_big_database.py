"""Everything that ``bench/database/big_database.py`` asks is answered; how fast, it measures over a million runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from bench.database.big_database import fill, main
from powerlab.store import open_store
from powerlab.store.reads import queries
from powerlab.store.reads.run_audit import audit_run

pytestmark = pytest.mark.campaign(minutes=0.5)


def test_every_question_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--sqlite", "--runs", "1200", "--samples", "1500000", "--times", "1"])
    said = capsys.readouterr().out
    assert "loaded 1,200 runs" in said
    assert "runs of a late, rare model" in said
    assert "questions within 200 ms" in said


def test_what_is_loaded_is_what_powerlab_would_have_written(tmp_path: Path) -> None:
    store = open_store(tmp_path / "big.db")
    samples = fill(store, 100, 100_000)
    with store.session() as session:
        assert session.execute(text("PRAGMA foreign_key_check")).all() == []
        run = next(run for _, run in queries.stream_runs(session, queries.RunFilter(limit=50)) if run.metrics)
        assert run.metric("power_w") is not None
        assert sum(len(trace.time_ns) for trace in queries.recorded(session, run.id)) > 500
        assert session.scalar(text("SELECT sum(sample_count) FROM trace_chunk")) == samples
        assert audit_run(session, run.id).compared
    store.close()
