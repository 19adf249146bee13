"""The quota of the measured worker for real: a control group of this machine, whichever version it has.

Other work may share the machine, so a run under a small quota is compared with one without, and the kernel's own count
of periods in which the group was stopped says that it was the quota.
"""

from __future__ import annotations

import fcntl
import json
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from requires import require_control_group

pytestmark = pytest.mark.campaign(minutes=1)

QUOTA = "cpu-quota=0.1"
"""So small that a worker on a busy machine is still held back by it."""
SWEEP = ("--threads", "1", "--repeats", "3", "--warm-up", "0", "--idle", "0", "--database", "none")


@pytest.fixture
def group() -> Iterator[Path]:
    """Where powerlab's group lies; a machine has one, so one test at a time starts without it and leaves none."""
    path = require_control_group()
    with open(Path(tempfile.gettempdir()) / "powerlab-tests-of-the-group.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert not path.exists(), f"{path} is left from something else: `powerlab modes restore` removes it"
        yield path
        assert not path.exists()


@pytest.fixture
def members(group: Path) -> Callable[[], set[int]]:
    """The processes in the group; none where there is no group."""

    def read() -> set[int]:
        try:
            return {int(pid) for pid in (group / "cgroup.procs").read_text().split()}
        except OSError:
            return set()

    return read


def stopped_periods(group: Path) -> int:
    """How often the kernel stopped the group at its quota."""
    try:
        lines = (group / "cpu.stat").read_text().splitlines()
    except OSError:
        return 0
    return int(dict(line.split() for line in lines)["nr_throttled"])


def test_a_tenth_of_a_core_is_slow_with_a_long_tail_and_nobody_elses_fault(
    powerlab, group, members, wait_while, workers_of
):
    modes = ("--modes", f"current,{QUOTA}", "--duration", "1", "--output", "sweep.json")
    with powerlab.started("profile", "mobilenetv2", *modes, *SWEEP) as sweep:
        wait_while(sweep, members)
        assert members() <= {worker.pid for worker in workers_of(sweep)}, "powerlab and its sampler stay outside"
        wait_while(sweep, lambda: stopped_periods(group))
        _, complaints = sweep.communicate(timeout=300)
    assert "Traceback" not in complaints
    runs = json.loads((powerlab.home / "sweep.json").read_text())["runs"]
    assert len(runs) == 6

    def median(mode: str, name: str) -> float:
        of_mode = [run["metrics"] for run in runs if run["point"]["mode"] == mode]
        return statistics.median(metric["value"] for metrics in of_mode for metric in metrics if metric["name"] == name)

    assert median(QUOTA, "throughput_img_per_s") < 0.6 * median("current", "throughput_img_per_s")
    assert median(QUOTA, "latency_p99_ms") > 2 * median("current", "latency_p50_ms"), "it waits for the next period"
    assert not {finding["rule"] for run in runs for finding in run["findings"]} & {"throttled", "mode-drift"}


@pytest.mark.parametrize(
    "way",
    [("modes", "restore"), ("profile", "mobilenetv2", "--duration", "0.05", *SWEEP)],
    ids=["restore", "next sweep"],
)
def test_the_group_of_a_killed_sweep_is_removed_while_its_worker_still_runs(powerlab, group, members, wait_while, way):
    with powerlab.started("profile", "mobilenetv2", "--modes", QUOTA, "--duration", "60", *SWEEP) as sweep:
        wait_while(sweep, members)
        (worker,) = [psutil.Process(pid) for pid in members()]
        worker.suspend()  # so that it is surely there when the group is to go
        sweep.kill()
        sweep.wait()
    try:
        assert members() == {worker.pid}
        assert "has not restored the previous settings yet" in powerlab("modes").stdout
        done = powerlab(*way)
        assert done.returncode in {0, 1}, done.stderr
        assert not group.exists()
        assert worker.is_running(), "it moved out of the group, and was not killed"
        assert group.name not in Path(f"/proc/{worker.pid}/cgroup").read_text().replace("\n", "/").split("/")
    finally:
        worker.kill()
    assert "there is nothing to put back" in powerlab("modes", "restore").stdout


def test_a_quota_can_be_set_to_stay_and_taken_back(powerlab, group):
    for mode in ("cpu-quota=0.5", "cpu-quota=1"):
        done = powerlab("modes", "set", mode)
        assert (done.returncode, done.stderr) == (0, "")
    assert group.is_dir()
    done = powerlab("modes", "restore")
    assert (done.returncode, done.stderr) == (0, "")
    assert not group.exists()
