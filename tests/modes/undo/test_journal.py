from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.modes.undo import journal as module
from powerlab.modes.undo.journal import Entry, Journal, boot_id, place_of
from powerlab.sysroot import Sysroot

TEXTS = st.text(max_size=20)
SETTINGS = st.lists(st.builds(Setting, knob=TEXTS, target=TEXTS, value=TEXTS), max_size=5).map(tuple)
ENTRIES = st.builds(Entry, mode=TEXTS, boot_id=TEXTS, pid=st.integers(1, 2**22), previous=SETTINGS, target=SETTINGS)
ENTRY = Entry(
    mode="MODE_15W",
    boot_id="b",
    pid=1,
    previous=(Setting(knob="nvpmodel", target="mode", value="0"),),
    target=(Setting(knob="nvpmodel", target="mode", value="2"),),
)


@given(ENTRIES)
def test_an_entry_reads_back_as_it_was_written(entry: Entry) -> None:
    assert module._decode(module._encode(entry)) == entry


def test_an_entry_survives_in_the_file(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "deep" / "journal.json")
    assert journal.read() is None
    journal.write(ENTRY)
    assert Journal(tmp_path / "deep" / "journal.json").read() == ENTRY
    journal.remove()
    assert journal.read() is None
    assert list((tmp_path / "deep").iterdir()) == []


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_no_flipped_byte_goes_unnoticed(place: int, flip: int) -> None:
    text = bytearray(module._encode(ENTRY))
    text[place % len(text)] ^= flip
    try:
        entry = module._decode(bytes(text))
    except (ValueError, KeyError, TypeError):
        return
    assert entry == ENTRY, "a change that alters nothing, such as other white space, is harmless"


@pytest.mark.parametrize("keep", [0, 1, 50, -1, -2])
def test_a_damaged_journal_is_set_aside_told_once_and_then_out_of_the_way(tmp_path: Path, keep: int) -> None:
    journal = Journal(tmp_path / "journal.json")
    text = module._encode(ENTRY).rstrip()
    (tmp_path / "journal.json").write_bytes(text[:keep])
    with pytest.raises(PowerlabError, match="damaged and is set aside"):
        journal.read()
    assert journal.read() is None
    assert (tmp_path / "journal.damaged").read_bytes() == text[:keep]


def test_half_a_journal_under_the_temporary_name_is_no_journal(tmp_path: Path) -> None:
    (tmp_path / "journal.tmp").write_bytes(module._encode(ENTRY)[:40])
    journal = Journal(tmp_path / "journal.json")
    assert journal.read() is None
    journal.write(ENTRY)
    assert journal.read() == ENTRY


def test_the_file_and_then_its_directory_are_forced_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    real_fsync, real_replace = os.fsync, os.replace

    def fsync(handle: int) -> None:
        calls.append("directory" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")
        real_fsync(handle)

    def replace(source: Path, target: Path) -> None:
        calls.append("rename")
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    Journal(tmp_path / "journal.json").write(ENTRY)
    assert calls == ["file", "rename", "directory"]


def test_a_place_that_cannot_be_written_is_told_before_anything_is_set(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PowerlabError, match="no mode is set"):
        Journal(tmp_path / "file" / "journal.json").write(ENTRY)


def test_each_device_has_its_own_place(tmp_path: Path) -> None:
    places = {place_of(Sysroot(base), tmp_path) for base in (Path("/"), tmp_path / "a", tmp_path / "b")}
    assert len(places) == 3
    assert place_of(Sysroot(tmp_path / "a"), tmp_path) == place_of(Sysroot(tmp_path / "b" / ".." / "a"), tmp_path)


def test_a_kernel_without_boot_ids_is_no_error(tmp_path: Path, board: Sysroot) -> None:
    assert boot_id(Sysroot(tmp_path)) == ""
    assert len(boot_id(board)) == 36
