"""A backend small enough to know: one matrix product. ``model`` chooses how it misbehaves."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import numpy as np

from powerlab.backends.base import LoadOptions
from powerlab.domain.errors import PowerlabError


class NumpyBackend:
    def __init__(self, model: str, batch_size: int) -> None:
        self._model = model
        self._batch_size = batch_size
        self._runs = 0

    def inputs(self, seed: int) -> dict[str, np.ndarray]:
        if self._model == "pictures":
            return {"x": np.zeros((self._batch_size, 3, 8, 8), dtype=np.float32)}
        return {"x": np.random.default_rng(seed).random((self._batch_size, 64), dtype=np.float32)}

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        self._runs += 1
        time.sleep(0.001 * self._batch_size)
        if self._runs > 3:
            misbehave(self._model)
        flat = inputs["x"].reshape(self._batch_size, -1)
        return {"y": flat @ flat.T}


def misbehave(model: str) -> None:
    match model:
        case "crash":
            os.write(2, b"the engine stepped on a rake\n")
            os._exit(3)
        case "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            threading.Event().wait()
        case "memory":
            raise MemoryError("cannot allocate 7.5 GiB")
        case "garbage":
            os.write(int(sys.argv[1]), b"\xff\xff\xff\xff all work and no play")
            os._exit(0)
        case "nonsense":
            os.write(int(sys.argv[1]), b"\x05\x00\x00\x00hello")
            os._exit(0)
        case "chatty":
            os.write(1, b"printed to standard output\n")


def load(options: LoadOptions) -> NumpyBackend:
    model = options.model
    if model == "unreadable":
        raise PowerlabError("the model 'unreadable' cannot be read; give another.")
    if model == "dies-loading":
        os._exit(9)
    if model == "affinity":
        raise RuntimeError(f"cores {sorted(os.sched_getaffinity(0))}")
    return NumpyBackend(model, options.batch_size)
