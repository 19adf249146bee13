"""A ring of processes adds up what each of them has, and tells in a sentence that one is gone."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.place import Place
from powerlab.engine.training import TrainingSession
from powerlab.engine.training.ring import RingGroup
from training.test_together import check, learn
from training.together_program import network


@contextmanager
def places(size: int, *, key: str = "secret", meet_s: float = 30) -> Iterator[list[Place]]:
    listener = socket.create_server(("127.0.0.1", 0))
    port, number = listener.getsockname()[1], listener.detach()
    others = [
        Place(rank=rank, size=size, key=key, host="127.0.0.1", port=port, meet_s=meet_s) for rank in range(1, size)
    ]
    yield [Place(rank=0, size=size, key=key, listener=number, meet_s=meet_s), *others]


def in_a_ring(size: int, act: Callable[[RingGroup], object]) -> list:
    def one(place: Place) -> object:
        group = RingGroup(place)
        try:
            return act(group)
        finally:
            group.close()

    with places(size) as all_of_them, ThreadPoolExecutor(size) as pool:
        return list(pool.map(one, all_of_them))


@pytest.mark.parametrize("size", [2, 3, 5])
def test_sums_are_the_same_bits_in_all(size):
    shapes = (1, 2, 7, 300_000)

    def act(group: RingGroup) -> list[np.ndarray]:
        random = np.random.default_rng(group.rank)
        arrays = [random.standard_normal(count).astype(np.float32) for count in shapes]
        for array in arrays[1:]:
            group.begin([array])
        group.finish()
        group.add_up(arrays[:1])
        return arrays

    found = in_a_ring(size, act)
    randoms = [np.random.default_rng(rank) for rank in range(size)]
    for place, count in enumerate(shapes):
        wanted = sum(random.standard_normal(count).astype(np.float32).astype(float) for random in randoms)
        np.testing.assert_allclose(found[0][place], wanted, rtol=1e-5, atol=1e-5)
        assert all((one[place] == found[0][place]).all() for one in found)


def test_two_in_a_ring_learn_what_one_does():
    def act(group: RingGroup):
        return learn(TrainingSession(network(4), optimizer="adam", threads=1, group=group), group.rank)

    check(in_a_ring(2, act))


def test_the_first_begins_each_step_and_its_end_ends_the_others():
    def act(group: RingGroup) -> int:
        if group.rank == 0:
            for _ in range(3):
                assert group.go()
            return 3
        steps = 0
        while group.go():
            steps += 1
        return steps

    assert in_a_ring(3, act) == [3, 3, 3]


def test_one_that_is_gone_is_told():
    def act(group: RingGroup) -> str:
        if group.rank == 1:
            return ""
        with pytest.raises(PowerlabError) as told:
            group.add_up([np.zeros(10_000_000, np.float32)])
        return str(told.value)

    assert in_a_ring(2, act)[0].startswith("another process of the 2 that train together is gone (")


def test_strangers_are_not_let_in_and_who_does_not_come_is_told():
    with places(2, meet_s=0.5) as (first, second), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(RingGroup, first)
        stranger = Place(rank=1, size=2, key="another", host=second.host, port=second.port, meet_s=0.2)
        with pytest.raises(PowerlabError, match="the 2 processes that are to train together did not meet"):
            RingGroup(stranger)
        with pytest.raises(PowerlabError, match=r"did not meet within 0\.5 s"):
            waiting.result(10)
