"""One case of the kill test: a board, a mode, and who is killed; at every step a death, a recovery, a comparison."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import time
import zlib
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from kill_boards import BOOT_ID, change_by_hand, content, different, make_as, new_board, reboot
from kill_steps import NEVER, Countdown, arm, without_rights

from powerlab.domain.errors import PowerlabError
from powerlab.modes.controller import ModeController
from powerlab.privileged.client import be_the_helper
from powerlab.privileged.protocol import SOCKET
from powerlab_helper.actions import Actions
from powerlab_helper.listening_socket import listening, only_helper
from powerlab_helper.server import Server

HELPED = ("client of the helper", "helper", "both")
SCENARIOS = ("applied", "set", "restore", "reboot", *HELPED)
_KNOB_WRITES = ("write", "ftruncate", "pwrite", "sendmsg")


@dataclass(frozen=True)
class Case:
    """What is killed while it does what to which board."""

    board: str
    scenario: str
    mode: str
    most_steps: int


@dataclass
class Outcome:
    """What came of a case."""

    case: Case
    steps: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    restores: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Trial:
    """A board, and what happens to it."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.tree, self.state = case, folder / "board", folder / "state"
        self.sysroot = new_board(case.board, self.tree)
        self.helped = case.scenario in HELPED
        self.boots = 0
        self.dirty = False
        self.at_boot = content(self.tree)
        if case.scenario == "reboot":
            reboot(self.tree, self.at_boot, 0)
            self.at_boot = content(self.tree)
        else:
            change_by_hand(self.tree)
        if self.helped:  # makes what only root makes: the lock file, the socket's directory
            self.tree.joinpath("run/powerlab").mkdir(exist_ok=True)
        self.before = content(self.tree)

    def prepare(self) -> None:
        """Bring board and disk to where a change begins."""
        if self.dirty:
            make_as(self.tree, self.before)
        self.dirty = True
        self.tree.joinpath("run/lock/powerlab-modes.lock").unlink(missing_ok=True)
        shutil.rmtree(self.state, ignore_errors=True)
        if self.case.scenario == "restore":
            ModeController(self.sysroot, self.state).set(self.case.mode)

    def act(self) -> None:
        """Do what is going to be cut short."""
        controller = ModeController(self.sysroot, self.state)
        if self.case.scenario == "set":
            controller.set(self.case.mode)
        elif self.case.scenario == "restore":
            controller.restore()
        else:
            with controller.applied(self.case.mode):
                pass

    def run_until(self, step: int) -> list[str]:
        """Act in a process that dies at a step; return the names of its last step, or of all where it never dies."""
        reader, writer = os.pipe()
        os.set_inheritable(writer, True)
        kills_helper = self.case.scenario == "helper"
        helper = self.start_helper(Countdown(step, writer) if kills_helper else None) if self.helped else None
        pid = os.fork()
        if pid == 0:
            if not kills_helper:
                arm(Countdown(step, writer))
            status = 1
            try:
                with self.rights():
                    self.act()
                status = 0
            except PowerlabError:  # a helper is gone, or the device does not take this mode
                status = 0
            finally:
                os._exit(status)
        os.close(writer)
        _, status = os.waitpid(pid, 0)
        if helper is not None:
            if self.case.scenario == "both" or kills_helper:
                os.kill(helper, signal.SIGKILL)
            else:
                os.kill(helper, signal.SIGTERM)
            os.waitpid(helper, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
            raise RuntimeError(f"{self.case}: the process failed instead of being killed")
        self.orphans = reader
        return os.read(reader, 2**16).decode().split("\n")

    def outlive_orphans(self) -> None:
        """Wait until all programs that the killed process started have ended."""
        while os.read(self.orphans, 2**16):
            pass

    def rights(self) -> AbstractContextManager[None]:
        """Everything, or what an agent beside a helper may."""
        return without_rights(self.tree) if self.helped else nullcontext()

    def start_helper(self, countdown: Countdown | None) -> int:
        """Start a helper; it may be killed, and then another one takes its place."""
        ready, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            be_the_helper()
            logging.disable()
            path = self.sysroot.path(SOCKET)
            with only_helper(path), listening(path, os.getgid()) as listener:
                if countdown:
                    arm(countdown)
                os.close(tell)
                Server(listener, Actions(self.sysroot), frozenset({os.getuid()})).serve()
            os._exit(0)
        os.close(tell)
        os.read(ready, 1)  # ends when the helper listens
        os.close(ready)
        return pid

    def recover(self) -> list[str]:
        """Recover as the next process would, twice; return what is not as it should be."""
        failures = []
        helper = self.start_helper(None) if self.helped else None
        try:
            with self.rights():
                for attempt in range(2):
                    controller = ModeController(self.sysroot, self.state)
                    stays = self.case.scenario in {"set", "restore"}
                    written = controller.restore() if stays else controller.recover()
                    if attempt and written:
                        failures.append(f"the second recovery wrote {len(written)} settings")
                if controller.unrestored():
                    failures.append("the journal is still there")
        except PowerlabError as error:
            failures.append(str(error))
        finally:
            if helper is not None:
                os.kill(helper, signal.SIGTERM)
                os.waitpid(helper, 0)
        self.outlive_orphans()
        after = content(self.tree)
        os.close(self.orphans)
        boot = {BOOT_ID: after[BOOT_ID]} if self.case.scenario == "reboot" else {}
        failures += [f"{path} differs" for path in different({**self.before, **boot}, after)]
        self.dirty = bool(failures or boot)
        return failures


def carry_out(case: Case, folder: Path) -> Outcome:
    """Kill at every step of a case, or at ``most_steps`` of them where it has more."""
    began = time.monotonic()
    outcome = Outcome(case)
    shutil.rmtree(folder, ignore_errors=True)
    trial = Trial(case, folder)
    trial.prepare()
    names = [name for name in trial.run_until(NEVER) if name]
    outcome.steps = len(names)
    outcome.failures += trial.recover()
    for step in chosen(names, case.most_steps, zlib.crc32(repr(case).encode())):
        trial.prepare()
        (name, *_) = trial.run_until(step)
        if case.scenario == "reboot":
            trial.boots += 1
            trial.outlive_orphans()  # no program writes on while a machine boots
            reboot(trial.tree, trial.at_boot, trial.boots)
        failures = trial.recover()
        outcome.kills[name or "none"] += 1
        outcome.restores += not failures
        where = f"{case.board}, {case.scenario} {case.mode}, killed at {step} ({name})"
        outcome.failures += [f"{where}: {what}" for what in failures]
    shutil.rmtree(folder)
    outcome.seconds = time.monotonic() - began
    return outcome


def chosen(names: list[str], most: int, phase: int) -> list[int]:
    """Choose the steps to die at: all, or where there are too many, half of them among the many writes of knobs.

    They lie evenly, and the phase, another one for each case, moves them: together the cases come by every step.
    """
    if len(names) <= most:
        return list(range(len(names)))
    many = [step for step, name in enumerate(names) if name in _KNOB_WRITES]
    few = [step for step, name in enumerate(names) if name not in _KNOB_WRITES]
    return sorted(_evenly(few, most // 2, phase) + _evenly(many, most - min(most // 2, len(few)), phase))


def _evenly(steps: list[int], most: int, phase: int) -> list[int]:
    if len(steps) <= most:
        return steps
    return [steps[(place * len(steps) + phase % len(steps)) // most % len(steps)] for place in range(most)]
