"""``powerlab database retire``, and the same options of a server."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import text

from powerlab import cli
from powerlab.cli.commands.database import retire as retire_command
from powerlab.store import Store, open_store
from powerlab.store.traces.registry import open_traces
from server_examples import RAIL, Clock, make_trace
from trace_lab import lab_with

OLD = Clock(datetime(2020, 1, 2, tzinfo=UTC))


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("POWERLAB_TRACES", raising=False)
    monkeypatch.delenv("POWERLAB_DATABASE", raising=False)
    return str(tmp_path / "lab.db")


def fill(store: Store) -> int:
    """Store two runs of 2020 with traces; return how many events of the log there are."""
    with closing(store):
        lab = lab_with(store)
        for run in (0, 1):
            assert all(lab.send(run, make_trace(RAIL, 600, run)))
        with store.session() as session:
            return session.scalar(text("SELECT count(*) FROM audit_event")) or 0


def retire(*words: str) -> int:
    return cli.main(["database", "retire", *words])


def test_what_is_asked_for_goes_and_is_counted(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    logged = fill(open_store(database, OLD))
    assert retire("--keep-traces", "12", "--database", database) == cli.EXIT_OK
    told = capsys.readouterr().out
    assert told.startswith("removed 4 trace chunks older than 01 ")
    assert retire("--keep-traces", "12", "--keep-audit", "12", "--database", database) == cli.EXIT_OK
    none, audit = capsys.readouterr().out.splitlines()
    assert none.startswith("removed 0 trace chunks")
    assert audit.startswith(f"removed {logged} audit log entries")
    assert retire("--keep-events", "12", "--database", database) == cli.EXIT_OK
    assert " live events older than 01 " in capsys.readouterr().out


def test_files_go_too_and_are_counted(database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = f"file://{tmp_path}/traces"
    fill(open_store(database, OLD, traces=open_traces(files)))
    assert retire("--keep-traces", "12", "--database", database, "--traces", files) == cli.EXIT_OK
    assert "removed 4 trace chunks, and 4 files, older than 01 " in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "traces").iterdir()) == ["powerlab-database"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--database", "{there}"], "give a retention: --keep-traces, --keep-events or --keep-audit"),
        (["--keep-traces", "0", "--database", "{there}"], "kept for 1 to 1200 months, not 0"),
        (["--keep-traces", "9", "--keep-audit", "-3", "--database", "{there}"], "1 to 1200 months, not -3"),
        (["--keep-traces", "9", "--database", "{there}.gone"], "there is no database"),
        (["--keep-traces", "9", "--database", "{there}", "--traces", "ftp://x"], "cannot store traces at 'ftp://x'"),
    ],
)
def test_what_cannot_be_carried_out_is_a_sentence_and_removes_nothing(
    database: str, words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(open_store(database, OLD))
    assert retire(*(word.format(there=database) for word in words)) == cli.EXIT_USAGE
    assert why in " ".join(capsys.readouterr().err.split())
    with closing(open_store(database)) as store, store.session() as session:
        assert session.scalar(text("SELECT count(*) FROM trace_chunk")) == 4


@pytest.mark.campaign
def test_a_database_that_is_in_use_is_a_sentence(
    database: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(open_store(database, OLD))
    monkeypatch.setattr("powerlab.store.database._BUSY_TIMEOUT_MS", 10)
    opened = open_store(database)
    monkeypatch.setattr(retire_command, "open_existing", lambda _: opened)
    with closing(open_store(database)) as other, other.write():
        assert retire("--keep-traces", "12") == cli.EXIT_USAGE
    assert "the database is busy or unavailable (database is locked); try again." in capsys.readouterr().err


def test_a_server_takes_the_same_options(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--keep-traces", "--keep-events", "--keep-audit"):
        assert cli.main(["serve", "--database", database, option, "0"]) == cli.EXIT_USAGE
        assert "kept for 1 to 1200 months, not 0" in capsys.readouterr().err
    assert not Path(database).exists()
