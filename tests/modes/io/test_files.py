from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.modes.io.files import can_write, read_value, write_value
from powerlab.sysroot import Sysroot


def test_a_value_is_the_first_line(tmp_path: Path) -> None:
    (tmp_path / "knob").write_text("998400 \nrest of a longer text\n")
    assert read_value(Sysroot(tmp_path), "/knob") == "998400"
    with pytest.raises(OSError, match="No such file"):
        read_value(Sysroot(tmp_path), "/nothing")


def test_a_value_is_written_in_one_call_and_without_truncating_first(
    board: Sysroot, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"
    real_open, flags_seen = os.open, []

    def spying_open(name: Path, flags: int) -> int:
        flags_seen.append(flags)
        return real_open(name, flags)

    monkeypatch.setattr(os, "open", spying_open)
    write_value(board, path, "powersave")
    assert flags_seen == [os.O_WRONLY]
    assert board.path(path).read_text() == "powersave\n"


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.EACCES, "run powerlab as root"),
        (errno.EPERM, "run powerlab as root"),
        (errno.EROFS, "/sys mounted writable"),
        (errno.EINVAL, "the device says: Invalid argument"),
        (errno.EBUSY, "the device says: Device or resource busy"),
    ],
)
def test_a_refusal_says_why_and_what_to_do(
    board: Sysroot, monkeypatch: pytest.MonkeyPatch, number: int, says: str
) -> None:
    def refuse(handle: int, data: bytes) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "write", refuse)
    with pytest.raises(PowerlabError) as refusal:
        write_value(board, "/sys/devices/system/cpu/cpu1/online", "0")
    assert "cpu1/online does not take '0'" in str(refusal.value)
    assert says in str(refusal.value)


def test_a_file_that_is_not_there_cannot_be_written(tmp_path: Path) -> None:
    assert not can_write(Sysroot(tmp_path), "/nothing")
    with pytest.raises(PowerlabError, match="No such file"):
        write_value(Sysroot(tmp_path), "/nothing", "1")
    assert list(tmp_path.iterdir()) == []
