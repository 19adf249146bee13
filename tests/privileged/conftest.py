from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from child_process import ChildProcess
from powerlab.sysroot import SIMULATION_MARKER, Sysroot
from requires import missing

NOBODY = 65534
POLICY = "/sys/devices/system/cpu/cpufreq/policy0"
ZONE = "/sys/devices/virtual/powercap/intel-rapl/intel-rapl:0"
FILES = {
    f"/{SIMULATION_MARKER}": "{}",
    "/etc/secret": "not for agents",
    "/proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\n",
    f"{POLICY}/scaling_governor": "powersave",
    f"{POLICY}/scaling_available_governors": "performance powersave",
    f"{POLICY}/scaling_min_freq": "800000",
    f"{POLICY}/scaling_max_freq": "3600000",
    f"{POLICY}/cpuinfo_min_freq": "800000",
    f"{POLICY}/cpuinfo_max_freq": "3600000",
    f"{POLICY}/related_cpus": "0",
    f"{ZONE}/name": "package-0",
    f"{ZONE}/energy_uj": "123456789",
    f"{ZONE}/max_energy_range_uj": "262143328850",
}
LINKS = {"/sys/class/powercap/intel-rapl:0": "../../devices/virtual/powercap/intel-rapl/intel-rapl:0"}


@pytest.fixture
def tree() -> Iterator[Sysroot]:
    """A small machine with one cluster and one counter, in a place every user can come to."""
    base = Path(tempfile.mkdtemp(prefix="powerlab-privileged-"))
    base.chmod(0o755)
    for path, text in FILES.items():
        file = base / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    for path, target in LINKS.items():
        link = base / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    lock = base / "run" / "lock"
    lock.mkdir(parents=True)
    lock.chmod(0o1777)
    (base / ZONE.lstrip("/") / "energy_uj").chmod(0o400)
    yield Sysroot(base)
    shutil.rmtree(base)


Helper = subprocess.Popen[str]
Serving = Callable[..., AbstractContextManager[Helper]]


@pytest.fixture
def serving(tree: Sysroot) -> Serving:
    """Starts a helper on the tree; ends it, unless the test did."""

    @contextmanager
    def started(user: int, *options: str) -> Iterator[Helper]:
        command = [sys.executable, "-m", "powerlab_helper.main", "--user", str(user), "--sysroot", str(tree.base)]
        with ChildProcess([*command, *options], stderr=subprocess.PIPE, text=True) as helper:
            assert helper.stderr is not None
            first = helper.stderr.readline()
            assert "serving user" in first, first + helper.stderr.read()
            try:
                yield helper
            finally:
                helper.terminate()
                helper.stderr.read()

    return started


@pytest.fixture
def helper(serving: Serving) -> Iterator[Helper]:
    """A helper for the user who runs the tests."""
    with serving(os.getuid()) as started:
        yield started


@pytest.fixture
def as_nobody() -> Callable[[Callable[[], object]], str]:
    """Calls a function in a process without any rights and returns the text of its result; only root can.

    A fork and no new program: the interpreter may lie where that user cannot come to.
    """
    if os.geteuid() != 0:
        missing("only root can become another user; run the tests as root to see the helper serve one")

    def run(function: Callable[[], object]) -> str:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                said = repr(function())
            except BaseException as error:
                said = f"{type(error).__name__}: {error}"
            os.write(writer, said.encode())
            os._exit(0)
        os.close(writer)
        with open(reader, encoding="utf-8") as result:
            said = result.read()
        os.waitpid(pid, 0)
        return said

    return run
