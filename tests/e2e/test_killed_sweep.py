"""A sweep that is killed while it holds a power mode: the device gets its own settings back, and no process stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.campaign(minutes=1)

SWEEP = ("--modes", "MODE_15W", "--threads", "1", "--duration", "60", "--database", "none")
QUICK = ("--threads", "1", "--duration", "0.05", "--warm-up", "0", "--idle", "0", "--database", "none")
WRITABLE = {
    *("online", "scaling_governor", "scaling_min_freq", "scaling_max_freq"),
    *("min_freq", "max_freq", "emc_iso_cap", "tpc_pg_mask", "control"),
}


def settings(tree: Path) -> dict[str, str]:
    """Every file of the tree that sets something."""
    files = [path for path in sorted((tree / "sys").rglob("*")) if path.name in WRITABLE and path.is_file()]
    return {str(path.relative_to(tree)): path.read_text() for path in files}


def change_by_hand(tree: Path) -> None:
    """Settings that no mode would choose: going back to a mode's own is not enough."""
    policy = tree / "sys/devices/system/cpu/cpufreq/policy0"
    (policy / "scaling_governor").write_text("ondemand\n")
    (policy / "scaling_max_freq").write_text("1881600\n")
    (tree / "sys/devices/17000000.gv11b/devfreq/17000000.gv11b/max_freq").write_text("905250000\n")


@pytest.fixture
def tree(powerlab) -> Iterator[Path]:
    """A simulated board whose sensors move, as a user starts one."""
    directory = powerlab.home / "xavier"
    with powerlab.started("boards", "simulate", "jetson-agx-xavier", directory, "--run") as simulator:
        assert "wrote a simulated jetson-agx-xavier to" in simulator.stdout.readline()
        assert "sensors are live" in simulator.stdout.readline()
        change_by_hand(directory)
        yield directory


@pytest.fixture
def killed(powerlab, tree: Path, wait_while, workers_of) -> Callable[[], list[psutil.Process]]:
    """Kills a sweep in MODE_15W, and returns the workers it had."""

    def kill() -> list[psutil.Process]:
        core4 = tree / "sys/devices/system/cpu/cpu4/online"
        journal = tree / "var/lib/powerlab"
        with powerlab.started("profile", "mobilenetv2", "--sysroot", tree, *SWEEP) as sweep:
            wait_while(sweep, lambda: core4.read_text().strip() == "0" and any(journal.glob("*")))
            wait_while(sweep, lambda: workers_of(sweep))
            workers = workers_of(sweep)
            sweep.kill()
        return workers

    return kill


def test_what_a_killed_sweep_left_is_put_back_by_restore(powerlab, tree, killed):
    before = settings(tree)
    assert len(before) > 20
    workers = killed()
    left = settings(tree)
    assert left["sys/devices/system/cpu/cpu4/online"] == "0\n", "it was killed while the mode was applied"
    assert "has not restored the previous settings yet" in powerlab("modes", "--sysroot", tree).stdout
    done = powerlab("modes", "restore", "--sysroot", tree)
    assert (done.returncode, done.stderr) == (0, "")
    assert "settings put back" in done.stdout
    assert settings(tree) == before
    assert psutil.wait_procs(workers, timeout=30)[1] == [], "a worker ends when its sweep is gone"
    assert "there is nothing to put back" in powerlab("modes", "restore", "--sysroot", tree).stdout
    assert settings(tree) == before


def test_what_a_killed_sweep_left_is_put_back_by_the_next_sweep(powerlab, tree, killed):
    before = settings(tree)
    killed()
    assert settings(tree) != before
    done = powerlab("profile", "mobilenetv2", "--sysroot", tree, "--modes", "current,MODE_15W", *QUICK)
    assert done.returncode in {0, 1}, done.stderr
    assert "6 of 6 runs finished" in done.stderr
    assert settings(tree) == before
