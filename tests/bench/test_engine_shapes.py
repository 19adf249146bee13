"""The bench of changing sizes compares the same network, and tells the first run of each size."""

from __future__ import annotations

import numpy as np
import pytest

from bench.engine import shapes as timing
from powerlab.engine import Session

pytestmark = pytest.mark.campaign


def test_open_sizes_are_timed_beside_fixed_ones(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(timing, "ROUNDS", 2)
    path = timing.open_file("squeezenet", tmp_path)
    shapes = [(1, 3, 64, 64), (2, 3, 64, 96)]
    assert list(Session(path, threads=1).inputs.values()) == [(-1, 3, -1, -1)]
    ratios, first_s = timing.measure(path, 1, shapes)
    assert len(ratios) == len(first_s) == 2
    assert min(*ratios, *first_s) > 0


def test_open_and_fixed_sizes_give_the_same_bits(tmp_path) -> None:
    path = timing.open_file("squeezenet", tmp_path)
    image = {"x": np.random.default_rng(0).random((2, 3, 64, 96), np.float32)}
    found = Session(path, threads=1).run(image)
    for name, value in Session(path, threads=1, shapes={"x": (2, 3, 64, 96)}).run(image).items():
        np.testing.assert_array_equal(found[name], value)
