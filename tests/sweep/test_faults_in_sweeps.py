"""Every fault of a simulated board, end to end: a short sweep says exactly what happened, loses nothing and goes on.

No fault ends a sweep, becomes 0 W, costs a run its latency (unless the mode itself could not be set), or leaves the
board in another power mode than before.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from powerlab.boards.simulator import create_tree, layout
from powerlab.boards.simulator.faults.control import clear_fault, set_fault
from powerlab.boards.simulator.load import busy_threads
from powerlab.boards.simulator.process import running
from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run, Verdict
from powerlab.sweep.events import RunFinished, SweepFinished
from powerlab.sweep.host import Host
from powerlab.sweep.runner import run_sweep
from powerlab.sysroot import Sysroot

pytestmark = pytest.mark.campaign(minutes=3)

XAVIER, ORIN, XEON = "jetson-agx-xavier", "jetson-agx-orin", "intel-xeon"
POWER_RULES = {"missing-power", "power-gap", "stale-sensor"}
BUSY_RULES = {
    *("power-gap", "window-too-short", "too-few-samples", "background-load", "throttled"),
    *("missing-idle", "idle-drift", "implausible-power", "stalled", "unsteady", "sampling-load"),
}
"""What a machine that runs other tests beside this one may bring about by itself."""
MID_RUN_S = 0.4
REPEATS = 3

SweepOf = Callable[..., "Outcome"]


@dataclass(frozen=True)
class Outcome:
    runs: list[Run]
    finished: SweepFinished
    sysroot: Sysroot

    def findings(self, run: int) -> dict[str, Verdict]:
        return {finding.rule: finding.verdict for finding in self.runs[run].findings}

    def powers_w(self) -> list[float]:
        """Return the power of the runs that have one."""
        return [power.value for run in self.runs if (power := run.metric("power_w")) is not None]

    def words(self) -> str:
        return " ".join(finding.detail for run in self.runs for finding in run.findings)


@contextmanager
def set_in_the_first_run(sysroot: Sysroot, fault: str) -> Iterator[None]:
    """Set a fault when a worker has been busy for a while."""
    done = threading.Event()

    def wait() -> None:
        while not done.wait(0.01):
            if busy_threads(sysroot):
                if not done.wait(MID_RUN_S):
                    set_fault(sysroot, fault)
                return

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def knobs(host: Host) -> list[object]:
    return [setting for knob in host.controller._knobs for setting in knob.read(host.sysroot)]


@pytest.fixture
def sweep_of(make_plan, numpy_engine, tmp_path: Path) -> SweepOf:
    """Return a function that sweeps a board which has a fault from the start, or gets it in the first run."""

    def sweep(board: str, fault: str, *, mid_run: bool, mode: str = "current", duration_s: float = 1.0) -> Outcome:
        directory = tmp_path / "board"
        create_tree(board, directory)
        plan = make_plan(
            models=("good",),
            threads=(1,),
            modes=(mode,),
            repeats=REPEATS,
            duration_s=duration_s,
            warm_up_s=0.0,
            idle_s=0.2,
            engines=(numpy_engine,),
        )
        if not mid_run:
            set_fault(Sysroot(directory), fault)
        with running(directory) as sysroot:
            host = Host(sysroot=sysroot, state_dir=tmp_path / "state", name="bench")
            before = knobs(host)
            if mid_run:
                with set_in_the_first_run(sysroot, fault):
                    events = list(run_sweep(plan, "s", host))
            else:
                events = list(run_sweep(plan, "s", host))
            after = knobs(host)
            # Somebody else's change stays, as it should, and limits that are gone cannot be read.
            if fault != "mode-change":
                assert [setting for setting in after if setting not in before] == []
                assert after == before or fault == "unplugged"
            assert host.controller.unrestored() is None
        runs = [event.run for event in events if isinstance(event, RunFinished)]
        assert isinstance(events[-1], SweepFinished)
        outcome = Outcome(runs, events[-1], sysroot)
        nothing_is_lost(outcome)
        return outcome

    return sweep


def nothing_is_lost(outcome: Outcome) -> None:
    assert len(outcome.runs) == REPEATS
    for run in outcome.runs:
        if run.verdict is Verdict.FAILED:
            continue
        assert run.metric("latency_p50_ms").value > 0
        power = run.metric("power_w")
        assert power is None or power.value > 0
        if any(finding.rule in POWER_RULES and finding.verdict is Verdict.VOID for finding in run.findings):
            assert power is None


@pytest.mark.parametrize("fault", ["nc-rail", "dead-sensor"])
def test_a_rail_that_was_never_there_is_missing_from_the_total_in_words(sweep_of, fault):
    outcome = sweep_of(XAVIER, fault, mid_run=False)
    for number, run in enumerate(outcome.runs):
        assert set(outcome.findings(number)) - BUSY_RULES == {"incomplete-total"}, run.findings
        assert run.total.proposed
        assert "too low, because GPU cannot be read" in run.total.scope
        assert "ina3221:GPU" not in run.total.rails
    assert all(power > 1 for power in outcome.powers_w())


@pytest.mark.parametrize("fault", ["enodata", "unplugged"])
def test_a_rail_that_fails_while_it_is_read_takes_the_watts_and_nothing_else(sweep_of, fault):
    outcome = sweep_of(XAVIER, fault, mid_run=True)
    for number, run in enumerate(outcome.runs):
        assert run.verdict is Verdict.VOID
        assert POWER_RULES & set(outcome.findings(number)), run.findings
        assert run.metric("power_w") is None
    assert "GPU" in outcome.words() or "cannot be opened" in outcome.words()


def test_counters_of_a_server_unplugged_while_they_are_read(sweep_of):
    outcome = sweep_of(XEON, "unplugged", mid_run=True)
    assert [run.verdict for run in outcome.runs] == [Verdict.VOID] * REPEATS
    assert all("missing-power" in outcome.findings(number) for number in range(REPEATS))


def test_sensors_that_hang_while_they_are_read_are_found_in_that_run_and_in_those_that_follow(sweep_of):
    outcome = sweep_of(XAVIER, "stale", mid_run=True, duration_s=2.5)
    for number in range(REPEATS):
        assert outcome.findings(number)["stale-sensor"] is Verdict.VOID
    # A busy machine may bring the fault before the first window, and then the load alone shows it.
    assert "although the load started" in outcome.words()


def test_sensors_that_hung_before_anything_was_seen_of_them_are_found_by_the_load(sweep_of):
    outcome = sweep_of(XAVIER, "stale", mid_run=False)
    for number in range(REPEATS):
        assert outcome.findings(number)["stale-sensor"] is Verdict.VOID


def test_counters_that_wrap_every_few_seconds_give_the_same_watts(sweep_of):
    outcome = sweep_of(XEON, "counter-wrap", mid_run=False)
    for number, run in enumerate(outcome.runs):
        assert set(outcome.findings(number)) <= BUSY_RULES, run.findings
    _, energy_uj = outcome.sysroot.read(layout.ENERGY_FILE).split()
    assert int(energy_uj) > 3 * 100e6, "the counters wrapped several times"
    assert all(20 < power < 400 for power in outcome.powers_w())


def test_modes_that_need_a_reboot_fail_in_words_and_nothing_is_set(sweep_of):
    outcome = sweep_of(XAVIER, "reboot-prompt", mid_run=False, mode="MODE_15W")
    assert [run.verdict for run in outcome.runs] == [Verdict.FAILED] * REPEATS
    assert outcome.finished.failed_count == REPEATS
    assert "reboot" in outcome.words().lower()
    assert outcome.sysroot.read("/var/lib/nvpmodel/status") == "pmode:0000"


def test_a_way_back_that_suddenly_needs_a_reboot_is_kept_for_later(make_plan, numpy_engine, tmp_path):
    """The mode cannot be put back while the fault lasts: powerlab says so, and the journal keeps the way back."""
    create_tree(XAVIER, tmp_path / "board")
    plan = make_plan(
        models=("good",),
        threads=(1,),
        modes=("MODE_15W",),
        duration_s=0.3,
        warm_up_s=0,
        idle_s=0,
        engines=(numpy_engine,),
    )
    with running(tmp_path / "board") as sysroot:
        host = Host(sysroot=sysroot, state_dir=tmp_path / "state", name="bench")
        before, runs = knobs(host), []

        def carry_out() -> None:
            for event in run_sweep(plan, "s", host):
                if isinstance(event, RunFinished):
                    runs.append(event.run)
                    set_fault(sysroot, "reboot-prompt")

        with pytest.raises(PowerlabError, match=r"did not set MAXN.*MODE_15W"):
            carry_out()
        assert runs
        assert host.controller.unrestored() is not None
        clear_fault(sysroot, "reboot-prompt")
        assert host.controller.recover()
        assert knobs(host) == before
        assert host.controller.unrestored() is None


def test_over_current_marks_the_runs_it_slowed_down(sweep_of):
    outcome = sweep_of(ORIN, "over-current", mid_run=True)
    for number in range(REPEATS):
        assert "throttled" in outcome.findings(number)
    assert "over-current protection slowed the module down" in outcome.words()
    assert not {"missing-power", "stale-sensor"} & {
        rule for number in range(REPEATS) for rule in outcome.findings(number)
    }


def test_a_mode_that_somebody_else_changes_voids_the_run(sweep_of):
    outcome = sweep_of(XAVIER, "mode-change", mid_run=True, mode="MODE_30W_ALL")
    assert outcome.findings(0)["mode-drift"] is Verdict.VOID
    assert "somebody changed" in outcome.words()
    assert outcome.sysroot.read("/var/lib/nvpmodel/status") == "pmode:0000"


def test_a_wall_clock_that_jumps_moves_no_figure(sweep_of):
    outcome = sweep_of(XAVIER, "clock-jump", mid_run=True)
    for number, run in enumerate(outcome.runs):
        assert set(outcome.findings(number)) <= BUSY_RULES, run.findings
        assert (run.window_ns[1] - run.window_ns[0]) / 1e9 < 60
        assert abs(run.window_ns[1] - time.monotonic_ns()) / 1e9 < 600
    assert all(5 < power < 30 for power in outcome.powers_w())
