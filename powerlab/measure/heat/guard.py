"""End a run's worker when its device gets too hot.

with HeatGuard(sysroot, limits, worker.kill) as guard:     # raises TooHotError where the run was ended
    ...                                                     # all that the worker does

A device that nobody can watch counts as too hot: a guard that fails for any reason ends the run and says so.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from powerlab.domain.temperature import TemperatureLimits
from powerlab.measure.heat.judge import NO_TEMPERATURE, HeatJudge
from powerlab.measure.worker.process import WorkerError
from powerlab.sysroot import Sysroot
from powerlab.throttling.temperatures import Temperatures

LOOK_PERIOD_S = 1.0
"""The kernel's own zones have new values about once a second, and on some boards reading one takes a millisecond."""


class TooHotError(Exception):
    """A run was ended because of its device's temperature; the text says why in words.

    Attributes:
        rule: the name of the finding.
    """

    def __init__(self, rule: str, sentence: str) -> None:
        super().__init__(sentence)
        self.rule = rule


class HeatGuard:
    """Looks at every temperature once a second, from the start of a worker to its end; without a limit it does nothing.

    Attributes:
        core_share: processor time of the looks as a share of one core, so far.
    """

    def __init__(
        self,
        sysroot: Sysroot,
        limits: TemperatureLimits,
        end: Callable[[], None],
        look_period_s: float = LOOK_PERIOD_S,
    ) -> None:
        """Prepare.

        Args:
            sysroot: where the temperatures are.
            limits: what the device is held to.
            end: ends what heats it; called once at most, by another thread.
            look_period_s: time between two looks.
        """
        self.core_share = 0.0
        self._sysroot, self._end, self._look_period_s = sysroot, end, look_period_s
        self._judge = HeatJudge(limits) if limits.max_c is not None else None
        self._broken = ""
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._judge is not None:
            arguments = (self._judge,)
            self._thread = threading.Thread(target=self._watch, args=arguments, name="powerlab-heat-guard", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop looking.

        Raises:
            TooHotError: the run was ended; in the place of what the worker's end looked like.
        """
        if self._thread is None or self._judge is None:
            return
        self._stopping.set()
        self._thread.join()
        if error is not None and not isinstance(error, WorkerError):
            return
        if self._broken:
            raise TooHotError(NO_TEMPERATURE, self._broken) from error
        if self._judge.ended is not None:
            raise TooHotError(self._judge.ended, self._judge.why()) from error

    def words(self) -> str:
        """Return what was watched and how hot it got so far; empty without a limit."""
        return "" if self._judge is None else self._judge.words()

    def _watch(self, judge: HeatJudge) -> None:
        try:
            with Temperatures(self._sysroot) as temperatures:
                self._look_until_stopped(judge, temperatures)
        except Exception as error:
            # A vendor's library may raise anything, and a device that nobody watches is not left alone under load.
            what = f"{type(error).__name__}: {error}"
            self._broken = f"the temperature guard failed ({what}) and could not watch; the run was ended."
            self._end()

    def _look_until_stopped(self, judge: HeatJudge, temperatures: Temperatures) -> None:
        begin_s = time.monotonic()
        while True:
            last, was_over = self._stopping.is_set(), judge.ended is not None
            if judge.look(temperatures.read(), time.monotonic()) and not was_over:
                self._end()
            self.core_share = time.thread_time() / max(time.monotonic() - begin_s, self._look_period_s)
            if last:
                return
            self._stopping.wait(self._look_period_s)
