from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.modes.io.programs import output_of
from powerlab.sysroot import Sysroot


def program(board: Sysroot, text: str) -> str:
    path = board.path("/usr/bin/work")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return "/usr/bin/work"


def has_ended(pid: int) -> bool:
    """Say whether a process is gone or nobody has buried it yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def check_ends(pid: int) -> None:
    for _ in range(1000):
        if has_ended(pid):
            return
        time.sleep(0.01)
    pytest.fail(f"{pid} goes on")


def test_what_a_program_says_is_returned_its_complaints_too(board: Sysroot) -> None:
    assert output_of(board, program(board, "echo one; echo two >&2; exit 3"), timeout_s=30) == "one\ntwo\n"


def test_a_program_that_does_not_end_is_ended_with_all_it_started(board: Sysroot, tmp_path: Path) -> None:
    """NVIDIA's are scripts: what they had started went on changing clocks while the old ones were put back."""
    noted = tmp_path / "pid"
    slow = program(board, f"sleep 1000 & echo $! > {noted}.new; mv {noted}.new {noted}; wait")
    with pytest.raises(PowerlabError, match=r"work did not end within 1 s"):
        output_of(board, slow, timeout_s=1)
    check_ends(int(noted.read_text()))


def test_ctrl_c_ends_a_program_with_all_it_started(
    board: Sysroot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = tmp_path / "pid"
    slow = program(board, f"sleep 1000 & echo $! > {noted}.new; mv {noted}.new {noted}; wait")

    def pressed(self: object, said: bytes | None, timeout: float) -> tuple[bytes, bytes]:
        while not noted.is_file():
            time.sleep(0.01)
        signal.raise_signal(signal.SIGINT)
        return b"", b""

    monkeypatch.setattr(subprocess.Popen, "communicate", pressed)
    with pytest.raises(KeyboardInterrupt):
        output_of(board, slow, timeout_s=30)
    check_ends(int(noted.read_text()))


def test_files_of_a_program_are_as_open_as_it_means_them_to_be(board: Sysroot, tmp_path: Path) -> None:
    """The helper's own umask keeps everybody out, and the mode nvpmodel notes is everybody's to read."""
    before = os.umask(0o077)
    try:
        output_of(board, program(board, f"echo pmode:0000 > {tmp_path / 'status'}"), timeout_s=30)
    finally:
        os.umask(before)
    assert (tmp_path / "status").stat().st_mode & 0o777 == 0o644
