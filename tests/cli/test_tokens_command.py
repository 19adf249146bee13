"""``powerlab tokens``, on a database and through a server that others can reach."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from powerlab import cli
from powerlab.cli.commands.serve.listen_policy import ListenPolicy
from powerlab.cli.commands.serve.server import compose, settings_of
from powerlab.store import open_store
from powerlab.store.reads.audit_log import EventFilter, list_events
from served import served


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "powerlab.db")


def run(*words: str) -> int:
    return cli.main(["tokens", *words])


def make(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run("create", *words) == 0
    told, token = capsys.readouterr().out.splitlines()
    assert told.endswith("it is shown this once:")
    return token


@pytest.fixture
def server(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve the database as if to others, and let every command ask that server."""
    store = open_store(database)
    with closing(store), served(compose(store, settings_of(ListenPolicy(host="0.0.0.0")))) as url:
        monkeypatch.setenv("POWERLAB_SERVER", url)
        yield url


def test_the_first_admin_comes_from_the_database_and_makes_the_others(
    database: str, server: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make(capsys, "root", "--role", "admin", "--database", database)
    assert run("list", "--server", server) == 2
    assert "POWERLAB_TOKEN" in capsys.readouterr().err
    monkeypatch.setenv("POWERLAB_TOKEN", root)
    alice = make(capsys, "alice", "--role", "operator", "--valid", "90d", "--server", server)
    assert run("list", "--json", "--server", server) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["role"]) for one in listed] == [("alice", "operator"), ("root", "admin")]
    monkeypatch.setenv("POWERLAB_TOKEN", alice)
    assert run("code", "--server", server) == 0
    assert len(capsys.readouterr().out.strip()) == 32
    assert run("revoke", "root", "--server", server) == 2
    assert "needs the role admin" in capsys.readouterr().err
    monkeypatch.setenv("POWERLAB_TOKEN", root)
    assert run("revoke", "alice", "--server", server) == 0
    assert capsys.readouterr().out == "token 2 of alice is revoked\n"
    monkeypatch.setenv("POWERLAB_TOKEN", alice)
    assert run("code", "--server", server) == 2
    assert "was revoked" in capsys.readouterr().err
    with closing(open_store(database)) as store, store.session() as session:
        done = [(one.actor, one.action) for one in list_events(session, EventFilter())]
    assert done == [
        ("root", "revoke token"),
        ("alice", "make enrolment code"),
        ("root", "create token"),
        ("command line", "create token"),
    ]


def test_tokens_on_a_database(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--database", database)
    first, second = make(capsys, "alice", *where), make(capsys, "bob", "--valid", "2y", *where)
    assert first != second
    assert run("list", *where) == 0
    shown = capsys.readouterr().out
    assert "it is revoked" in shown
    assert first not in shown
    assert run("revoke", "1", *where) == 0
    assert run("revoke", "bob", "--json", *where) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"id": 2, "name": "bob"}
    assert run("list", *where) == 0
    assert capsys.readouterr().out.count("revoked 2") == 2
    assert run("code", "--json", *where) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"code", "expires_at"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("create", "alice", "--valid", "90"), "--valid '90' is not a time"),
        (("create", "alice", "--valid", "99y"), "valid for"),
        (("create", "a b"), "cannot be the name"),
        (("revoke", "nobody"), "no token 'nobody'"),
        (("code", "--device", "nobody"), "no device 'nobody'"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    database: str, words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words, "--database", database) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("powerlab: ")
    assert told.err.count("\n") == 1
    assert sentence in told.err
