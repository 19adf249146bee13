"""Start the worker process, exchange messages with a deadline, and report in words why it ended."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import IO, Self, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError, TooLargeError
from powerlab.measure.layers.messages import LayerRequest, Repeated, Roofs, Steps
from powerlab.measure.percentiles.latency import TimedInferences
from powerlab.measure.worker.exit_reason import exit_reason, last_line
from powerlab.measure.worker.messages import (
    LENGTH,
    MAX_FRAME_BYTES,
    Broken,
    Follow,
    Load,
    Measure,
    Ready,
    Refused,
    Reply,
    Request,
    Show,
    Shown,
    Timed,
    WarmUp,
    decode_reply,
    encode,
    packed,
    unpacked,
)

LOAD_TIMEOUT_S = 300.0
"""Loading folds and packs the weights; the largest models take tens of seconds on a small board."""
FOLLOW_S = 14 * 86400.0
"""Who follows another device's steps says nothing until that ends them."""
SLOWNESS = 10.0
"""A worker that takes this many times longer than its requests ask for is taken to hang."""
PATIENCE_S = 30.0
_STOP_S = 2.0

_R = TypeVar("_R", Ready, Timed, Shown, Steps, Repeated, Roofs)


class WorkerError(Exception):
    """The worker gave no result; the text says why in words. The run is failed, the sweep goes on."""


class Worker:
    """One worker process, pinned to its cores; a context manager that leaves no process behind.

    Args:
        cores: the cores it may run on.
        patience_s: time a request may take beyond ten times what it asked for.
        listeners: file descriptors of sockets that it takes over.

    Raises:
        WorkerError: it cannot be started or pinned.
    """

    def __init__(
        self, cores: frozenset[int], patience_s: float = PATIENCE_S, *, listeners: tuple[int, ...] = ()
    ) -> None:
        self._patience_s = patience_s
        self._inference_s = 0.0
        self._busy = False
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed with the worker
        self._replies, write_end = os.pipe()
        try:
            self._process = _start_pinned(write_end, self._output, cores, listeners)
        except OSError as error:
            os.close(self._replies)
            self._output.close()
            raise WorkerError(f"the worker could not be started on cores {sorted(cores)}: {error}") from error
        finally:
            os.close(write_end)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()

    @property
    def pid(self) -> int:
        """The worker's process id."""
        return self._process.pid

    def kill(self) -> None:
        """End the process now, whatever it does; who waits for its answer gets a WorkerError. Any thread may do it."""
        self._process.kill()

    def load(self, request: Load, timeout_s: float = LOAD_TIMEOUT_S) -> str:
        """Load a model; return the graphics processor's name, which is empty where none computes.

        Raises:
            PowerlabError: the model cannot be run, for a reason the user can fix; TooLargeError, where that is
                a lack of memory.
            WorkerError: the worker died or did not answer.
        """
        return self._ask(request, timeout_s, Ready).processor_name

    def warm_up(self, duration_s: float) -> float:
        """Answer untimed queries and return their mean time in s; raises as :meth:`load` does."""
        timeout_s = SLOWNESS * duration_s + self._patience_s
        self._inference_s = self._ask(WarmUp(duration_s=duration_s), timeout_s, Ready).inference_s
        return self._inference_s

    def measure(self, request: Measure) -> TimedInferences:
        """Run the timed window and return when every query began and ended; raises as :meth:`load` does."""
        each_s = self._inference_s
        if request.queries_per_s > 0:
            each_s = max(each_s, 1 / request.queries_per_s)
        asked_s = max(request.duration_s, request.min_inferences * each_s) + 2 * request.margin_s
        timed = self._ask(request, SLOWNESS * asked_s + self._patience_s, Timed)
        try:
            start_ns = np.frombuffer(timed.start_ns, dtype="<i8").astype(np.int64)
            end_ns = np.frombuffer(timed.end_ns, dtype="<i8").astype(np.int64)
            parts = {name: np.frombuffer(data, dtype="<i8").astype(np.int64) for name, data in timed.parts.items()}
        except ValueError as error:
            raise WorkerError("the worker answered with garbage: its times are cut off.") from error
        if not (start_ns.size == end_ns.size > 0 and np.all(end_ns > start_ns) and np.all(np.diff(start_ns) > 0)):
            raise WorkerError("the worker answered with garbage: its times are not in order.")
        if any(ns.size != start_ns.size for ns in parts.values()):
            raise WorkerError("the worker answered with garbage: its queries lack some of their parts.")
        return TimedInferences(start_ns=start_ns, end_ns=end_ns, part_ns=parts)

    def follow(self) -> None:
        """Make a step whenever the first of several devices begins one, until that ends; raises as :meth:`load`."""
        self._ask(Follow(), FOLLOW_S, Ready)

    def show(
        self, seed: int | None = None, given: Mapping[str, NDArray[np.float32]] | None = None
    ) -> list[dict[str, NDArray[np.float32]]]:
        """Run one inference and return every slice's outputs by name; raises as :meth:`load` does.

        Args:
            seed: of the inputs; None takes those that were loaded.
            given: inputs by name, of the whole batch, which is not cut into slices; a model's only input may have any
                name.
        """
        request = Show(seed=seed, given=None if given is None else packed(given))
        shown = self._ask(request, LOAD_TIMEOUT_S, Shown)
        try:
            return list(map(unpacked, shown.outputs))
        except ValueError as error:
            raise WorkerError("the worker answered with garbage: its outputs are cut off.") from error

    def ask(self, request: LayerRequest, timeout_s: float, expected: type[_R]) -> _R:
        """Ask something about single steps of a plan and return the answer; raises as :meth:`load` does."""
        return self._ask(request, SLOWNESS * timeout_s + self._patience_s, expected)

    def _ask(self, request: Request, timeout_s: float, expected: type[_R]) -> _R:
        deadline = time.monotonic() + timeout_s
        self._busy = True
        reply = self._exchange(request, deadline, timeout_s)
        self._busy = False
        if isinstance(reply, Refused):
            raise (TooLargeError if reply.memory else PowerlabError)(reply.sentence)
        if isinstance(reply, Broken):
            raise WorkerError(f"the engine failed in the worker: {reply.detail}.")
        if not isinstance(reply, expected):
            raise WorkerError(
                f"the worker answered with garbage: {type(reply).__name__} is not an answer to the request."
            )
        return reply

    def _exchange(self, request: Request, deadline: float, timeout_s: float) -> Reply:
        assert self._process.stdin is not None  # noqa: S101  Popen was given a pipe
        try:
            self._process.stdin.write(encode(request))
            self._process.stdin.flush()
            (length,) = LENGTH.unpack(self._read(LENGTH.size, deadline))
            if length > MAX_FRAME_BYTES:
                raise WorkerError("the worker answered with garbage: no message is that long.")
            return decode_reply(self._read(length, deadline))
        except (BrokenPipeError, EOFError) as error:
            raise WorkerError(self._exit_reason()) from error
        except TimeoutError as error:
            raise WorkerError(f"the worker did not answer within {timeout_s:.0f} s and was stopped.") from error
        except msgspec.MsgspecError as error:
            raise WorkerError(f"the worker answered with garbage: {error}.") from error

    def _read(self, size: int, deadline: float) -> bytes:
        data = bytearray()
        poll = select.poll()
        poll.register(self._replies, select.POLLIN)
        while len(data) < size:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not poll.poll(left_s * 1000):
                raise TimeoutError
            part = os.read(self._replies, min(size - len(data), 1 << 20))
            if not part:
                raise EOFError
            data += part
        return bytes(data)

    def _exit_reason(self) -> str:
        try:
            code = self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            return "the worker closed its pipe without an answer and was stopped."
        return exit_reason(code, last_line(self._output))

    def _end(self) -> None:
        """Let an idle worker leave by closing its input; end a busy one, by force where it does not listen."""
        assert self._process.stdin is not None  # noqa: S101  Popen was given a pipe
        with contextlib.suppress(BrokenPipeError):  # it is gone already, with a request still in the pipe
            self._process.stdin.close()
        if self._busy:
            self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        finally:
            os.close(self._replies)
            self._output.close()


def _start_pinned(
    reply_fd: int, output: IO[bytes], cores: frozenset[int], listeners: tuple[int, ...]
) -> subprocess.Popen[bytes]:
    """Start the worker on its cores from its first instruction: a child inherits the mask of the thread that forks.

    A thread is made for that and ends with it. To narrow the caller's own mask and put back what ``sched_getaffinity``
    said would be wrong: that leaves out cores that a power mode holds offline, and it would leave them out for good.
    """

    def start() -> subprocess.Popen[bytes]:
        os.sched_setaffinity(0, cores)
        return subprocess.Popen(
            [sys.executable, "-m", "powerlab.measure.worker.main", str(reply_fd)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            pass_fds=(reply_fd, *listeners),
            start_new_session=True,  # Ctrl-C is for the sweep, which ends its worker itself
        )

    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(start).result()
