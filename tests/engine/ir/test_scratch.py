"""Memory that is used again while weights are read: nothing that is kept lies there."""

from __future__ import annotations

import threading

import numpy as np

from powerlab.engine.ir.scratch import Scratch, room_for

FLOAT = np.dtype(np.float32)


def read(value, count=1000):
    room = room_for(FLOAT, count)
    room[...] = value
    return room


def test_what_is_kept_does_not_lie_in_the_scratch():
    scratch = Scratch()
    first = scratch.made(lambda: read(1))
    second = scratch.made(lambda: read(2)[::2])
    scratch.made(lambda: read(3))
    assert set(first) == {1}
    assert set(second) == {2}


def test_what_one_value_is_made_of_lies_apart():
    scratch = Scratch()
    for _ in range(3):
        made = scratch.made(lambda: np.concatenate([one.copy() for one in (read(1, 7), read(2, 70000), read(3, 7))]))
        assert [np.count_nonzero(made == number) for number in (1, 2, 3)] == [7, 70000, 7]


def test_memory_is_used_again():
    scratch, places = Scratch(), set()

    def make():
        room = read(1)
        places.add(room.ctypes.data)
        return room.sum(keepdims=True)

    for _ in range(5):
        scratch.made(make)
    assert len(places) <= 2


def test_elsewhere_memory_is_new():
    scratch = Scratch()
    kept = []

    def make():
        thread = threading.Thread(target=lambda: kept.append(read(5)))
        thread.start()
        thread.join()
        return read(6).copy()

    scratch.made(make)
    outside = read(7)
    scratch.made(make)
    assert set(kept[0]) == {5}
    assert set(outside) == {7}


def test_after_an_error_memory_is_new():
    def fail():
        read(1)
        raise ValueError

    scratch = Scratch()
    try:
        scratch.made(fail)
    except ValueError:
        outside = read(2)
    scratch.made(lambda: read(3).copy())
    assert set(outside) == {2}
