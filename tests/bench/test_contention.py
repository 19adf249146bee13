"""The bench of a busy process beside an engine gives latencies of both kinds, and no process stays behind."""

from __future__ import annotations

import psutil
import pytest

from bench.engine import contention

pytestmark = pytest.mark.campaign


def test_an_engine_is_timed_alone_and_beside_a_busy_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contention, "ROUNDS", 1)
    monkeypatch.setattr(contention, "ALONE_S", 0.1)
    monkeypatch.setattr(contention, "BESIDE_S", 0.2)
    alone, beside = contention.measure("mobilenetv2@64", "builtin", 2)
    assert len(alone) >= 5
    assert len(beside) >= 10
    assert min(alone + beside) > 0
    assert not [child for child in psutil.Process().children() if "while True" in " ".join(child.cmdline())]


def test_the_table_names_machine_model_and_engine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(contention, "measure", lambda model, engine, threads, situation: ([2.0, 2.0], [3.0, 3.0]))
    assert contention.main(["mobilenetv2"]) == 0
    out = capsys.readouterr().out
    assert "2 threads, batch 1" in out
    assert "mobilenetv2" in out
    assert "1.50" in out
