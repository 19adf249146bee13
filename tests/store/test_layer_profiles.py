"""Layer profiles in the store, on both databases."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy.exc import IntegrityError

from layer_profiles import layer_profile as a_profile
from powerlab.domain.errors import PowerlabError
from powerlab.domain.layers import Roof
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Workload
from powerlab.store import Store
from powerlab.store.errors import ConflictError, NotFoundError
from powerlab.store.reads.layers import layer_profile, list_layer_profiles, newest_profile_of, profile_beside
from powerlab.store.writes.layers import store_layer_profile


def keep(store: Store, device_id: str, *profiles):
    with store.write() as session:
        return [store_layer_profile(session, device_id, profile, store.clock()) for profile in profiles]


def identifier(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


@pytest.mark.parametrize(
    "profile",
    [a_profile(), a_profile(power=None), a_profile(roof=Roof(peak_gflops=123.4, memory_gb_per_s=5.6))],
    ids=["power", "no power", "roof"],
)
def test_a_profile_comes_back_as_it_was(store, device_id, profile):
    assert keep(store, device_id, profile) == [True]
    with store.session() as session:
        assert layer_profile(session, profile.id) == profile


def test_the_same_profile_twice_is_one(store, device_id):
    assert keep(store, device_id, a_profile()) + keep(store, device_id, a_profile()) == [True, False]


def test_another_profile_under_the_same_name_is_a_conflict(store, device_id):
    keep(store, device_id, a_profile())
    with pytest.raises(ConflictError, match="stored with different content"):
        keep(store, device_id, replace(a_profile(), threads=3))


def test_a_number_that_json_cannot_say_is_refused(store, device_id):
    profile = a_profile()
    broken = replace(profile, time_ratio=replace(profile.time_ratio, value=float("nan")))
    with pytest.raises(PowerlabError, match="LayerProfile"):
        keep(store, device_id, broken)


def test_a_profile_belongs_to_a_device(store):
    with pytest.raises(IntegrityError):
        keep(store, "no such device", a_profile())


def test_a_profile_there_is_not_is_not_found(store):
    with store.session() as session, pytest.raises(NotFoundError, match="there is no layer profile 'x'"):
        layer_profile(session, "x")


def test_the_newest_comes_first_and_pages_follow_on_each_other(store, clock, device_id, other_id):
    for number in range(5):
        clock.forward(1)
        keep(store, other_id if number == 2 else device_id, a_profile(identifier(number)))
    with store.session() as session:
        first = list_layer_profiles(session, limit=2)
        rest = list_layer_profiles(session, after=(first[-1][0], first[-1][1].id))
        own = list_layer_profiles(session, device_id=other_id)
    assert [profile.id for _, profile in (*first, *rest)] == [identifier(number) for number in (4, 3, 2, 1, 0)]
    assert [profile.id for _, profile in own] == [identifier(2)]


def test_a_run_is_shown_the_newest_profile_that_is_most_like_it(store, device_id):
    def like(number, **changes):
        return replace(a_profile(), id=identifier(number), **changes)

    other = like(4, model="alexnet")
    keep(store, device_id, like(1, batch_size=4, mode="MODE_15W"), like(2, batch_size=4, mode="MAXN"), like(3), other)
    point = Point(workload=Workload(model=a_profile().model, batch_size=4), threads=1, mode="MAXN")
    with store.session() as session:
        assert profile_beside(session, device_id, point).id == identifier(2)
        assert profile_beside(session, "another device", point) is None
        assert newest_profile_of(session, "alexnet") == other
        assert newest_profile_of(session, "vgg16") is None
