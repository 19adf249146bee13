"""Layer profiles through the API."""

from __future__ import annotations

import msgspec
import pytest

from layer_profiles import layer_profile
from powerlab.domain.layers import LayerProfile
from powerlab.protocol.records import LayerProfilePage
from powerlab.store.writes.layers import store_layer_profile

IDS = tuple(f"00000000-0000-4000-8000-{number:012d}" for number in range(3))


@pytest.fixture
def stored(store, clock, agent):
    for identifier in IDS:
        clock.forward(1)
        with store.write() as session:
            store_layer_profile(session, agent.device_id, layer_profile(identifier), store.clock())
    return agent.device_id


def page(client, **wishes) -> LayerProfilePage:
    reply = client.get("/api/v1/layers", params=wishes)
    assert reply.status_code == 200, reply.text
    return msgspec.json.decode(reply.content, type=LayerProfilePage)


def test_before_the_first_profile_the_list_is_empty(client):
    assert page(client) == LayerProfilePage(items=())


def test_profiles_come_newest_first_in_pages(client, stored):
    first = page(client, limit=2)
    rest = page(client, limit=2, cursor=first.next_cursor)
    assert [profile.id for profile in (*first.items, *rest.items)] == list(reversed(IDS))
    assert rest.next_cursor is None


def test_profiles_of_one_device(client, stored, stranger):
    assert len(page(client, device_id=stored).items) == 3
    assert page(client, device_id=stranger.device_id).items == ()


def test_one_profile(client, stored):
    reply = client.get(f"/api/v1/layers/{IDS[1]}")
    assert msgspec.json.decode(reply.content, type=LayerProfile) == layer_profile(IDS[1])


def test_a_profile_there_is_not_is_a_problem_in_words(client):
    reply = client.get("/api/v1/layers/nothing")
    assert reply.status_code == 404
    assert "there is no layer profile 'nothing'" in reply.json()["detail"]
