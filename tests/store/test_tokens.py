"""Tokens on both databases: what holds, what does not, and the move of the agents' tokens into the one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from alembic import command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.access import NewToken, Role, TokenRequest
from powerlab.store import Store, open_store
from powerlab.store.database import changing_tables
from powerlab.store.errors import ConflictError, NotFoundError, UnauthorisedError
from powerlab.store.reads.audit_log import EventFilter, list_events
from powerlab.store.reads.tokens import has_admin, list_tokens, session_key, token_by_hash, token_by_id
from powerlab.store.schema import alembic_config
from powerlab.store.secrets import sha256
from powerlab.store.tables import DeviceRow, TokenRow
from powerlab.store.writes.tokens import create_token, is_use_due, issue_agent_token, note_use, revoke_token
from server_examples import Clock


def create(store: Store, name: str = "alice", role: Role = Role.VIEWER, valid_s: int | None = None) -> NewToken:
    with store.write() as session:
        request = TokenRequest(name=name, role=role, valid_s=valid_s)
        return create_token(session, request, store.clock(), actor="root")


def by_hash(store: Store, token: str) -> Any:
    with store.session() as session:
        return token_by_hash(session, sha256(token), store.clock())


def test_a_token_is_found_by_its_hash_and_by_its_id(store: Store) -> None:
    made = create(store, "alice", Role.OPERATOR)
    assert by_hash(store, made.token) == made.record
    assert by_hash(store, made.token + "x") is None
    with store.session() as session:
        assert token_by_id(session, made.record.id, store.clock()) == made.record
        assert token_by_id(session, made.record.id + 1, store.clock()) is None


def test_what_is_over_says_so(store: Store, clock: Clock) -> None:
    short, long = create(store, "short", valid_s=60), create(store, "long")
    with store.write() as session:
        revoke_token(session, long.record.id, clock(), actor="root")
    clock.forward(60)
    for token, words in ((short, "has expired"), (long, "was revoked")):
        with pytest.raises(UnauthorisedError, match=words):
            by_hash(store, token.token)
        with store.session() as session, pytest.raises(UnauthorisedError, match=words):
            token_by_id(session, token.record.id, clock())


def test_a_name_means_one_token(store: Store, clock: Clock) -> None:
    first = create(store)
    with pytest.raises(ConflictError, match="revoke it first"):
        create(store)
    with pytest.raises(IntegrityError), store.write() as session:  # the database itself holds it
        session.add(TokenRow(name="alice", role="viewer", sha256="0" * 64, created_at=clock()))
    with store.write() as session:
        revoke_token(session, first.record.id, clock(), actor="root")
    create(store)


def test_a_device_has_one_agent(store: Store, device_id: str) -> None:
    with store.write() as session:
        first = issue_agent_token(session, device_id, store.clock())
    with store.write() as session:
        second = issue_agent_token(session, device_id, store.clock())
    with pytest.raises(UnauthorisedError, match="enrol the device again"):
        by_hash(store, first)
    assert by_hash(store, second).device_id == device_id


def test_who_is_an_admin(store: Store, clock: Clock, device_id: str) -> None:
    def any_admin() -> bool:
        with store.session() as session:
            return has_admin(session, clock())

    create(store, "reader")
    create(store, "operator", Role.OPERATOR)
    assert not any_admin()
    made = create(store, "root", Role.ADMIN, valid_s=100)
    assert any_admin()
    clock.forward(100)
    assert not any_admin()
    made = create(store, "root2", Role.ADMIN)
    assert any_admin()
    with store.write() as session:
        revoke_token(session, made.record.id, clock(), actor="root")
    assert not any_admin()


def test_revoking_twice_is_one_event_and_nobodys_is_none(store: Store) -> None:
    made = create(store)
    for _ in range(2):
        with store.write() as session:
            revoke_token(session, made.record.id, store.clock(), actor="root")
    with pytest.raises(NotFoundError, match="tokens list"), store.write() as session:
        revoke_token(session, made.record.id + 1, store.clock(), actor="root")
    with store.session() as session:
        done = [(one.actor, one.action, one.subject, one.detail) for one in list_events(session, EventFilter())]
    what = {"id": made.record.id, "role": "viewer"}
    assert done == [("root", "revoke token", "alice", what), ("root", "create token", "alice", what)]


def test_use_is_noted_once_in_a_while_and_never_backwards(store: Store, clock: Clock, device_id: str) -> None:
    with store.session() as session:
        token = list_tokens(session)[0]
    first = clock()
    clock.forward(300)
    with store.write() as session:
        note_use(session, token, clock())
        note_use(session, token, first)
    with store.session() as session:
        assert list_tokens(session)[0].last_used_at == clock()
        assert session.get_one(DeviceRow, device_id).seen_at == clock()
    assert is_use_due(None, clock())
    assert is_use_due(first, clock())
    assert not is_use_due(clock(), clock())


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(max_size=110))
def test_a_name_stands_in_the_log_as_it_is(store: Store, name: str) -> None:
    try:
        made = create(store, name)
    except PowerlabError:
        return
    assert made.record.name == name
    assert name.isascii()
    assert name.isprintable()
    assert " " not in name
    with store.write() as session:
        revoke_token(session, made.record.id, store.clock(), actor="root")


def test_every_server_on_a_database_has_the_same_key_and_every_database_its_own(
    store: Store, address: str, tmp_path: Path
) -> None:
    again, other = open_store(address), open_store(tmp_path / "other.db")
    keys = []
    for one in (store, again, other):
        with one.session() as session:
            keys.append(session_key(session))
    assert keys[0] == keys[1] != keys[2]
    assert {len(key) for key in keys} == {32}
    again.close()
    other.close()


def test_agents_tokens_move_down_and_up_with_their_data(store: Store, clock: Clock, device_id: str) -> None:
    with store.write() as session:
        current = issue_agent_token(session, device_id, clock())
    alice = create(store)
    with store.session() as session:
        before = session.execute(select(TokenRow.sha256, TokenRow.revoked_at).where(TokenRow.role == "agent")).all()
    _migrate(store, "0007")
    with store.session() as session:
        moved = session.execute(text("SELECT device_id, sha256, revoked_at FROM agent_token ORDER BY id")).all()
    assert [row[1] for row in moved] == [row[0] for row in before]
    assert [row[2] is None for row in moved] == [False, True]
    assert {row[0] for row in moved} == {device_id}
    _migrate(store, "head")
    with store.session() as session:
        after = session.execute(select(TokenRow.sha256, TokenRow.revoked_at).where(TokenRow.role == "agent")).all()
    assert after == before
    assert by_hash(store, current).name == f"device {device_id}"
    assert by_hash(store, alice.token) is None  # an older powerlab has no place for people's
    with store.write() as session:
        issue_agent_token(session, device_id, clock())  # and counting goes on after the rows that were moved


def test_of_two_tokens_that_a_device_had_the_newer_one_holds(store: Store, device_id: str) -> None:
    """Nothing kept two codes from enrolling a device at the same moment."""
    _migrate(store, "0007")
    with store.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO agent_token (device_id, sha256, created_at) "
                "SELECT device_id, :sha256, created_at FROM agent_token"
            ),
            {"sha256": sha256("newer")},
        )
    _migrate(store, "head")
    with store.session() as session:
        holding = session.scalars(select(TokenRow.sha256).where(TokenRow.revoked_at.is_(None))).all()
    assert holding == [sha256("newer")]


def _migrate(store: Store, revision: str) -> None:
    with changing_tables(store.engine) as connection:
        move = command.upgrade if revision == "head" else command.downgrade
        move(alembic_config(connection), revision)
