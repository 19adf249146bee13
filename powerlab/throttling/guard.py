"""All watches during one measurement, polled five times a second in a thread.

with Guard(sysroot) as guard:
    ...                                 # the work that is measured
    sentences = guard.finish()
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Self

from powerlab.sysroot import Sysroot
from powerlab.throttling.base import Watch, Watching
from powerlab.throttling.registry import WATCHES

LOOK_PERIOD_S = 0.2


class Guard:
    """Starts the watches on entering; a watch that breaks costs a sentence, and never the measurement.

    Attributes:
        core_share: after :meth:`finish`, processor time of the looks as a share of one core.
    """

    def __init__(
        self, sysroot: Sysroot, watches: Sequence[Watch] = WATCHES, look_period_s: float = LOOK_PERIOD_S
    ) -> None:
        self.core_share = 0.0
        self._sysroot, self._watches, self._look_period_s = sysroot, watches, look_period_s
        self._watchings: list[tuple[str, Watching]] = []
        self._broken: dict[str, str] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._look_until_stopped, name="powerlab-guard", daemon=True)

    def __enter__(self) -> Self:
        for watch in self._watches:
            self._try(watch.name, partial(self._start, watch))
        self._thread.start()
        return self

    def finish(self) -> tuple[str, ...]:
        """End watching and return what the watches have to say."""
        self._stop()
        sentences: list[str] = []
        for name, watching in self._watchings:
            self._try(name, partial(_finish, watching, sentences))
        self._watchings = []
        return (*sentences, *self._broken.values())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _start(self, watch: Watch) -> None:
        self._watchings.append((watch.name, watch.start(self._sysroot)))

    def _stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _look_until_stopped(self) -> None:
        begin_s = time.monotonic()
        while not self._stopping.wait(self._look_period_s):
            for name, watching in self._watchings:
                self._try(name, watching.sample)
        self.core_share = time.thread_time() / max(time.monotonic() - begin_s, 1e-9)

    def _try(self, name: str, act: Callable[[], object]) -> None:
        """Do something with a watch unless it broke before: it promises not to raise, a vendor's library does not."""
        if name in self._broken:
            return
        try:
            act()
        except Exception as error:
            self._broken[name] = (
                f"whether the device was slowed down is known in part only: the watch {name} failed "
                f"({type(error).__name__}: {error})"
            )


def _finish(watching: Watching, sentences: list[str]) -> None:
    sentences.extend(watching.finish())
