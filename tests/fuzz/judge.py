"""ONNX Runtime in a process of its own, asked for its answer: strange models crash it, which is no finding here."""

from __future__ import annotations

import multiprocessing
from contextlib import suppress

import onnxruntime


class Judge:
    """Starts its process when it is first asked, and again after a crash."""

    def __init__(self):
        self._process = self._pipe = None

    def __call__(self, data, inputs):
        """Return the outputs by name; None where ONNX Runtime refuses the model, or is killed by it."""
        if self._process is None or not self._process.is_alive():
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        try:
            self._pipe.send((data, inputs))
            return self._pipe.recv()
        except (EOFError, OSError):
            self.close()
            return None

    def close(self):
        """End the process."""
        if self._process is not None:
            self._pipe.close()
            self._process.join()
            self._process = None


def _serve(pipe):
    with suppress(EOFError):
        while True:
            data, inputs = pipe.recv()
            try:
                answer = _run(data, inputs)
            except Exception:  # it refuses in many ways; what it does not run judges nothing
                answer = None
            pipe.send(answer)


def _run(data, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4  # what it cannot run it says in exceptions, too
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return dict(zip([value.name for value in session.get_outputs()], session.run(None, inputs), strict=True))
