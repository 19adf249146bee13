"""Arrays in and out of .npz files: what numpy reads is what was written, and files are whole or not there."""

from __future__ import annotations

import os
import stat

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from powerlab.cli.commands.engine.npz import check_writable, read_npz, write_npz
from powerlab.domain.errors import PowerlabError

NAMES = st.one_of(st.sampled_from(["file", "x.npy", "a/b", "conv:0", "café"]), st.text("abcXYZ_/:. ", min_size=1))
ARRAYS = npst.arrays(np.float32, npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arrays=st.dictionaries(NAMES, ARRAYS, max_size=4))
def test_what_is_written_is_read_bit_by_bit(tmp_path, arrays):
    path = tmp_path / "o.npz"
    write_npz(path, arrays)
    for found in (read_npz(path), dict(np.load(path))):
        assert found.keys() == arrays.keys()
        assert all(found[name].tobytes() == value.tobytes() for name, value in arrays.items())
        assert all(found[name].shape == value.shape for name, value in arrays.items())
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_breaks_while_it_is_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "o.npz"
    write_npz(path, {"x": np.ones(3, np.float32)})
    before = path.read_bytes()
    with pytest.raises(ValueError, match="allow_pickle"):
        write_npz(path, {"x": np.zeros(3, np.float32), "y": np.array([object()])})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_others_may_read_the_file_as_far_as_the_umask_lets_them(tmp_path):
    previous = os.umask(0o027)
    try:
        write_npz(tmp_path / "o.npz", {})
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "o.npz").stat().st_mode) == 0o640


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_read_or_one_sentence(tmp_path, data):
    path = tmp_path / "i.npz"
    write_npz(path, {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "y": np.zeros((0, 4), np.float32)})
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))] if data.draw(st.booleans()) else whole)
    try:
        arrays = read_npz(path)
    except PowerlabError as error:
        sentence = str(error)
    else:
        assert all(isinstance(value, np.ndarray) for value in arrays.values())
        return
    assert str(path) in sentence
    assert "\n" not in sentence


def test_one_nameless_array_is_told_from_a_file_of_named_ones(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(3))
    with pytest.raises(PowerlabError, match=r"holds one nameless array \(\.npy\)"):
        read_npz(tmp_path / "a.npy")


def test_pickled_objects_are_never_loaded(tmp_path):
    np.savez(tmp_path / "p.npz", x=np.array([print], dtype=object))
    with pytest.raises(PowerlabError, match=r"not a readable \.npz file of plain arrays"):
        read_npz(tmp_path / "p.npz")


@pytest.mark.parametrize("place", ["none/o.npz", "folder"])
def test_where_nothing_can_be_written_is_said_before_the_work(tmp_path, place):
    (tmp_path / "folder").mkdir()
    with pytest.raises(PowerlabError, match=r"cannot be written.*give another path"):
        check_writable(tmp_path / place)
