"""A worker that is lost is said at once, with how it ended and what it was at; the run fails and ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from nested_pytest import nested_pytest


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGHUP)", "was ended by SIGHUP"),
        ("os._exit(3)", "ended with exit status 3"),
    ],
)
def test_how_a_worker_ended_and_at_which_test_is_said(tmp_path: Path, end: str, said: str) -> None:
    lines = ("import os, signal", "def test_before(): pass", f"def test_lost(): {end}", "def test_after(): pass")
    (tmp_path / "test_them.py").write_text("\n".join(lines))
    done = nested_pytest(tmp_path, "--max-worker-restart=0")
    assert done.returncode != 0
    assert f"worker gw0 {said}" in done.stdout
    assert "it was at test_them.py::test_lost" in done.stdout
