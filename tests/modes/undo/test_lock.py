from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.modes.undo import lock as module
from powerlab.modes.undo.lock import device_lock
from powerlab.sysroot import Sysroot

HOLDER = """
import sys
from pathlib import Path
from powerlab.modes.undo.lock import device_lock
from powerlab.sysroot import Sysroot
with device_lock(Sysroot(Path(sys.argv[1])), Path(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.readline()
"""


def hold(board: Sysroot, state_dir: Path) -> subprocess.Popen[str]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(board.base), str(state_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_the_refusal_names_the_process_that_holds_the_lock(board: Sysroot, tmp_path: Path) -> None:
    with hold(board, tmp_path / "its") as holder:
        refused = pytest.raises(PowerlabError, match=f"process {holder.pid} is setting power modes")
        with refused, device_lock(board, tmp_path / "ours"):
            pytest.fail("two at once")
        holder.communicate("\n")
    with device_lock(board, tmp_path / "ours"):
        pass


def test_the_lock_ends_with_a_killed_process(board: Sysroot, tmp_path: Path) -> None:
    with hold(board, tmp_path) as holder:
        holder.kill()
        holder.wait()
    with device_lock(board, tmp_path):
        assert board.read("/run/lock/powerlab-modes.lock") == str(os.getpid())


def test_a_program_that_outlives_its_killed_parent_keeps_the_lock_until_it_is_done(
    board: Sysroot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    with device_lock(board, tmp_path):
        orphan = subprocess.Popen(["/bin/cat", str(go)], stdout=subprocess.DEVNULL, close_fds=False)
    # As if the process that held the lock had been killed: its pid is gone, its child still runs.
    board.path("/run/lock/powerlab-modes.lock").write_text("4194399\n")
    monkeypatch.setattr(module, "_ORPHAN_WAIT_S", 0.05)
    with pytest.raises(PowerlabError, match="process 4194399"), device_lock(board, tmp_path):
        pytest.fail("the orphan still runs")
    go.write_text("")
    orphan.wait()
    with device_lock(board, tmp_path):
        pass


def test_without_a_lock_directory_on_the_device_the_state_directory_serves(board: Sysroot, tmp_path: Path) -> None:
    board.path("/run/lock").rmdir()
    with device_lock(board, tmp_path / "state"):
        assert (tmp_path / "state" / "powerlab-modes.lock").is_file()
        refused = pytest.raises(PowerlabError, match="is setting power modes")
        with refused, device_lock(board, tmp_path / "state"):
            pytest.fail("two at once")


def test_no_place_for_a_lock_is_told_in_words(board: Sysroot, tmp_path: Path) -> None:
    board.path("/run/lock").rmdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(PowerlabError, match="--state-dir"), device_lock(board, tmp_path / "file"):
        pytest.fail("no lock")


def test_every_user_may_lock_what_one_has_made(board: Sysroot, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with device_lock(board, tmp_path):
            pass
    finally:
        os.umask(before)
    assert board.path("/run/lock/powerlab-modes.lock").stat().st_mode & 0o777 == 0o666


def test_the_lock_file_can_be_made_beforehand(board: Sysroot) -> None:
    module.prepare_lock(board)
    module.prepare_lock(board)
    assert board.path("/run/lock/powerlab-modes.lock").stat().st_mode & 0o777 == 0o666
    board.path("/run/lock/powerlab-modes.lock").unlink()
    board.path("/run/lock").rmdir()
    module.prepare_lock(board)
    assert not board.path("/run/lock").exists()


def test_the_descriptor_is_known_while_the_lock_is_held_and_no_longer(board: Sysroot, tmp_path: Path) -> None:
    assert module.held_lock(board) is None
    with device_lock(board, tmp_path):
        handle = module.held_lock(board)
        assert handle is not None
        assert os.get_inheritable(handle)
        assert module.held_lock(Sysroot(tmp_path)) is None
    assert module.held_lock(board) is None


def test_a_process_waits_for_what_it_started_itself(board: Sysroot, tmp_path: Path) -> None:
    """The helper it asked was killed; the program below that still has the lock, under this process's number."""
    with device_lock(board, tmp_path):
        orphan = subprocess.Popen(["/bin/sleep", "0.2"], close_fds=False)
    with device_lock(board, tmp_path):
        assert orphan.poll() is not None, "it has ended, or it would still hold the lock"
    orphan.wait()


def test_a_process_that_holds_the_lock_does_not_wait_for_itself(board: Sysroot, tmp_path: Path) -> None:
    with device_lock(board, tmp_path):
        refused = pytest.raises(PowerlabError, match=f"process {os.getpid()} is setting power modes")
        with refused, device_lock(board, tmp_path):
            pytest.fail("twice at once")


@pytest.mark.parametrize("existing", [True, False])
def test_a_link_in_the_place_of_the_lock_leads_nobody_to_another_file(
    board: Sysroot, tmp_path: Path, existing: bool
) -> None:
    """The directory is everybody's: root would empty, or create for everybody, the file somebody chose."""
    victim = tmp_path / "shadow"
    if existing:
        victim.write_text("root:*:")
    board.path("/run/lock/powerlab-modes.lock").symlink_to(victim)
    with pytest.raises(PowerlabError, match=r"not a regular file.*sudo rm"), device_lock(board, tmp_path / "state"):
        pytest.fail("the link was followed")
    module.prepare_lock(board)
    assert victim.exists() == existing
    assert not existing or victim.read_text() == "root:*:"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_no_lock(board: Sysroot, tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(board.path("/run/lock/powerlab-modes.lock"))
    with pytest.raises(PowerlabError, match="not a regular file"), device_lock(board, tmp_path / "state"):
        pytest.fail("nothing was locked")


def test_a_full_disk_keeps_nobody_from_locking(board: Sysroot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings can be put back although there is no room for the number of the process that does it."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with device_lock(board, tmp_path):
        assert module.held_lock(board) is not None


def test_what_strangers_write_into_the_lock_is_not_repeated(board: Sysroot, tmp_path: Path) -> None:
    path = board.path("/run/lock/powerlab-modes.lock")
    path.write_text("\x1b[31m9999\n")
    path.chmod(0o666)
    handle = os.open(path, os.O_RDWR)
    try:
        assert module._holder(handle) == ""
        assert module._noted_change(handle) is None
    finally:
        os.close(handle)


def test_a_lock_that_may_only_be_read_is_the_same_lock(
    board: Sysroot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second one in the state directory would let two processes set modes at the same time."""
    module.prepare_lock(board)
    real_open = os.open

    def read_only(path: Any, flags: int, *rest: int, **options: Any) -> int:
        if str(path).endswith(".lock") and flags & os.O_RDWR:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real_open(path, flags, *rest, **options)

    with hold(board, tmp_path / "its") as holder:
        monkeypatch.setattr(os, "open", read_only)
        refused = pytest.raises(PowerlabError, match=f"process {holder.pid} is setting power modes")
        with refused, device_lock(board, tmp_path / "ours"):
            pytest.fail("two at once")
        holder.communicate("\n")
    with device_lock(board, tmp_path / "ours"):
        assert not (tmp_path / "ours").exists()
