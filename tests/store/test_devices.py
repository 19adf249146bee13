"""Enrolment and what it protects; sweeps checked against a device's own words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import select

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE
from powerlab.protocol.messages import Description, EnrolmentCodeRequest, EnrolReply, EnrolRequest, SweepRequest
from powerlab.store import Store
from powerlab.store.errors import ConflictError, NotFoundError, UnauthorisedError
from powerlab.store.reads import queries
from powerlab.store.reads.tokens import token_by_hash
from powerlab.store.secrets import sha256
from powerlab.store.tables import AuditEventRow, DeviceSnapshotRow, EnrolmentCodeRow, TokenRow
from powerlab.store.writes import devices
from powerlab.store.writes.sweeps import create_sweep
from server_examples import PLAN, Clock, capabilities, device


def make_code(store: Store, **body: object) -> str:
    with store.write() as session:
        return devices.make_enrolment_code(session, EnrolmentCodeRequest(**body), store.clock()).code


def enrol(store: Store, code: str, name: str = "board-1", **change: object) -> EnrolReply:
    request = EnrolRequest(**{"code": code, "device": device(name), "capabilities": capabilities(), **change})
    with store.write() as session:
        return devices.enrol(session, request, store.clock())


def who(store: Store, token: str) -> str | None:
    with store.session() as session:
        found = token_by_hash(session, sha256(token), store.clock())
        return found and found.device_id


def test_a_code_becomes_a_device_and_a_token(store: Store) -> None:
    reply = enrol(store, make_code(store))
    assert who(store, reply.token) == reply.device_id
    with store.session() as session:
        record = queries.device(session, reply.device_id)
        assert (record.device, record.capabilities) == (device(), capabilities())
        assert queries.list_devices(session) == [record]


def test_secrets_are_not_stored(store: Store) -> None:
    code = make_code(store)
    token = enrol(store, code).token
    with store.session() as session:
        assert session.scalars(select(TokenRow.sha256)).one() == sha256(token) != token
        assert session.scalars(select(EnrolmentCodeRow.sha256)).one() == sha256(code) != code
        actions = session.scalars(select(AuditEventRow.action).order_by(AuditEventRow.id)).all()
    assert actions == ["make enrolment code", "enrol"]


def test_a_code_works_once(store: Store) -> None:
    code = make_code(store)
    enrol(store, code)
    with pytest.raises(UnauthorisedError, match="used or expired"):
        enrol(store, code, "board-2")


def test_a_code_expires(store: Store, clock: Clock) -> None:
    code = make_code(store, valid_s=60)
    clock.forward(60)
    with pytest.raises(UnauthorisedError):
        enrol(store, code)


def test_a_wrong_code_is_refused_and_a_wrong_token_nobodys(store: Store) -> None:
    with pytest.raises(UnauthorisedError):
        enrol(store, "guess")
    assert who(store, "guess") is None


def test_a_name_is_not_taken_over(store: Store) -> None:
    enrol(store, make_code(store))
    code = make_code(store)
    with pytest.raises(ConflictError, match="board-1"):
        enrol(store, code)
    enrol(store, code, "board-2")  # the refusal did not use the code up


def test_enrolling_again_keeps_the_device_and_revokes_the_old_token(store: Store) -> None:
    first = enrol(store, make_code(store))
    second = enrol(store, make_code(store, device_id=first.device_id), "renamed")
    assert second.device_id == first.device_id
    assert who(store, second.token) == first.device_id
    with pytest.raises(UnauthorisedError, match="revoked"):
        who(store, first.token)


@pytest.mark.parametrize("body", [{"valid_s": 0}, {"valid_s": 10**9}])
def test_codes_last_a_sensible_time(store: Store, body: dict[str, int]) -> None:
    with pytest.raises(PowerlabError, match="valid for"):
        make_code(store, **body)


def test_a_code_for_nobody_is_refused(store: Store) -> None:
    with pytest.raises(NotFoundError):
        make_code(store, device_id="nonsense")


def test_another_protocol_is_refused(store: Store) -> None:
    with pytest.raises(ConflictError, match="version 99"):
        enrol(store, make_code(store), protocol=99)


def test_a_snapshot_is_taken_where_something_is_new(store: Store, device_id: str) -> None:
    said = Description(device=device(), capabilities=capabilities())
    fewer = replace(said, capabilities=replace(capabilities(), modes=(CURRENT_MODE,)))
    for words in (said, said, fewer, fewer):
        with store.write() as session:
            devices.describe(session, device_id, words, store.clock())
    with store.session() as session:
        assert len(session.scalars(select(DeviceSnapshotRow)).all()) == 2
        assert queries.device(session, device_id).capabilities == fewer.capabilities


def test_a_device_does_not_take_anothers_name(store: Store, device_id: str, other_id: str) -> None:
    said = Description(device=device("board-2"), capabilities=capabilities())
    with pytest.raises(ConflictError, match="board-2"), store.write() as session:
        devices.describe(session, device_id, said, store.clock())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"threads": (8,)}, "4 cores"),
        ({"modes": ("TURBO",)}, "TURBO"),
        ({"modes": ("REBOOT",)}, "reboot"),
        ({"repeats": 1}, "repeats"),
    ],
)
def test_a_plan_the_device_cannot_carry_out_is_refused(
    store: Store, device_id: str, change: dict[str, object], words: str
) -> None:
    with pytest.raises(PowerlabError, match=words), store.write() as session:
        create_sweep(session, SweepRequest(device_id=device_id, plan=replace(PLAN, **change)), store.clock())
    with store.session() as session:
        assert queries.list_sweeps(session) == []


def test_sweeps_are_listed_newest_first_and_paged(store: Store, clock: Clock, device_id: str) -> None:
    made = []
    for _ in range(5):
        clock.forward(1)
        with store.write() as session:
            made.append(create_sweep(session, SweepRequest(device_id=device_id, plan=PLAN), clock()))
    with store.session() as session:
        first = queries.list_sweeps(session, limit=2)
        rest = queries.list_sweeps(session, after=(first[-1].created_at, first[-1].id))
    assert [record.id for record in first + rest] == made[::-1]
