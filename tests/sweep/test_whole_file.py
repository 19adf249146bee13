"""Files written whole or not at all."""

import pytest

from powerlab.atomic_file import write_whole


def test_a_file_and_its_folder_are_made(tmp_path):
    path = tmp_path / "new" / "file.json"
    write_whole(path, b"first")
    write_whole(path, b"second")
    assert path.read_bytes() == b"second"
    assert [one.name for one in path.parent.iterdir()] == ["file.json"]


def test_what_cannot_be_written_leaves_the_old_content_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file.json"
    write_whole(path, b"old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("powerlab.atomic_file.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
