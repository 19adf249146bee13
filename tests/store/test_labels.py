"""Labels and groups, on both databases: what a selector chooses is what its words say."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError

from powerlab.domain.errors import PowerlabError
from powerlab.domain.selector import Label, Selector, parse_label
from powerlab.protocol.labs import Group
from powerlab.store import Store
from powerlab.store.errors import NotFoundError
from powerlab.store.reads import queries
from powerlab.store.reads.filters import DeviceFilter
from powerlab.store.reads.selection import expanded, list_groups
from powerlab.store.tables import AuditEventRow, DeviceLabelRow
from powerlab.store.writes import labels
from tests.store.conftest import add_device

KEYS, VALUES = ("rack", "fan", "old"), ("", "1", "2")


def put(store: Store, device_id: str, word: str) -> None:
    with store.write() as session:
        labels.set_label(session, device_id, parse_label(word), "ada", store.clock())


def chosen(store: Store, **body: Any) -> list[str]:
    with store.session() as session:
        found = queries.list_devices(session, DeviceFilter(selectors=expanded(session, Selector(**body))))
        return [one.id for one in found]


def name_group(store: Store, name: str, **body: Any) -> None:
    with store.write() as session:
        labels.put_group(session, Group(name=name, selector=Selector(**body)), "ada", store.clock())


def test_a_device_has_one_value_for_a_key(store: Store, device_id: str) -> None:
    for word in ("rack=3", "rack=4", "rack=4", "fan"):
        put(store, device_id, word)
    with store.session() as session:
        assert queries.device(session, device_id).labels == ("fan", "rack=4")
        (record,) = queries.list_devices(session)
        assert record.labels == ("fan", "rack=4")
        said = session.scalars(select(AuditEventRow.detail).where(AuditEventRow.action == "label device")).all()
    assert said == [{"label": "rack=3"}, {"label": "rack=4"}, {"label": "fan"}]


def test_what_is_taken_away_is_gone(store: Store, device_id: str) -> None:
    put(store, device_id, "rack=3")
    with store.write() as session:
        labels.remove_label(session, device_id, "rack", "ada", store.clock())
    assert chosen(store, labels=("rack",)) == []
    with pytest.raises(NotFoundError, match="has no label 'rack'"), store.write() as session:
        labels.remove_label(session, device_id, "rack", "ada", store.clock())


def test_a_device_has_so_many_labels_and_no_more(store: Store, device_id: str) -> None:
    for number in range(labels.MOST_LABELS):
        put(store, device_id, f"k{number}")
    with pytest.raises(PowerlabError, match="has 64 labels already"):
        put(store, device_id, "one-more")
    put(store, device_id, "k0=changed")


def test_nobody_labels_what_is_not_there(store: Store) -> None:
    with pytest.raises(NotFoundError):
        put(store, "nothing", "rack=3")


def test_a_group_is_what_its_selector_chooses_now(store: Store, device_id: str, other_id: str) -> None:
    put(store, device_id, "rack=3")
    name_group(store, "third", labels=("rack=3",))
    assert chosen(store, group="third") == [device_id]
    put(store, other_id, "rack=3")
    assert chosen(store, group="third") == [device_id, other_id]
    assert chosen(store, group="third", board="jetson-tx2") == []
    name_group(store, "third", labels=("rack=4",), board="generic")
    assert chosen(store, group="third") == []
    with store.session() as session:
        (group,) = list_groups(session)
        assert group.selector == Selector(board="generic", labels=("rack=4",))
    with store.write() as session:
        labels.remove_group(session, "third", "ada", store.clock())
    with pytest.raises(NotFoundError, match="no group 'third'"):
        chosen(store, group="third")


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("a b", {"board": "generic"}, "'a b' is not a valid group name"),
        ("all", {}, "chooses every device"),
        ("twice", {"group": "other"}, "not of the group 'other'"),
        ("bad", {"labels": ("rack=",)}, "not a valid label value"),
        ("long", {"board": "x" * 101}, "up to 100 letters"),
    ],
)
def test_a_group_that_is_none_is_refused(store: Store, name: str, body: dict[str, Any], words: str) -> None:
    with pytest.raises(PowerlabError, match=words):
        name_group(store, name, **body)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE device_label SET device_id = 'nobody'",
        "UPDATE device_label SET key = ''",
        "INSERT INTO device_label SELECT device_id, key, 'other' FROM device_label",
        "UPDATE device_group SET name = ''",
        "INSERT INTO device_group SELECT * FROM device_group",
    ],
)
def test_the_database_itself_refuses_nonsense(store: Store, device_id: str, statement: str) -> None:
    put(store, device_id, "rack=3")
    name_group(store, "third", labels=("rack=3",))
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(text(statement))


WORDS = st.builds(lambda key, value: Label(key=key, value=value), st.sampled_from(KEYS), st.sampled_from(VALUES))


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shelf=st.lists(st.lists(WORDS, max_size=4), min_size=1, max_size=3),
    wanted=st.lists(WORDS, max_size=3, unique=True),
)
def test_a_selector_chooses_what_its_words_say(store: Store, shelf: list[list[Label]], wanted: list[Label]) -> None:
    with store.write() as session:
        session.execute(DeviceLabelRow.__table__.delete())
    has: dict[str, dict[str, str]] = {}
    for words in shelf:
        device_id = add_device(store, f"board-{uuid.uuid4()}")
        for label in words:
            put(store, device_id, str(label))
        has[device_id] = {label.key: label.value for label in words}
    if not wanted:
        return
    meant = {
        device_id
        for device_id, own in has.items()
        if all(label.key in own and label.value in ("", own[label.key]) for label in wanted)
    }
    assert set(chosen(store, labels=tuple(map(str, wanted)))) == meant
