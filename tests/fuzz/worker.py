"""The process that fuzzes; it may crash, hang or run out of memory, and ``__main__`` starts another one.

    python -W ignore -m fuzz.worker FOLDER SEED SECONDS [RUNS]

With a number of RUNS, they change the corpus as it is, so that they are the same on every machine. In FOLDER lie
``corpus/`` (inputs that took a new way), ``findings/`` and ``now``, the input under way.
"""

from __future__ import annotations

import hashlib
import math
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from random import Random

from fuzz.edges import Edges
from fuzz.mutate import mutated
from fuzz.sandbox import NATIVE_VARIABLE, bounded, with_other_native_core
from fuzz.target import attempt

SLOWER = 10 if os.environ.get(NATIVE_VARIABLE) else 1
"""Sanitizers, and memory asked for piece by piece because of them, make everything that much slower."""

CPU_SECONDS = 20 * SLOWER
"""One input may take so long, of the processor's time."""


SLOW_SECONDS = 3 * SLOWER
"""An input that takes so long is worth a look."""


class TooLongError(BaseException):
    """An input takes longer than it may."""


def _too_long(_number, _frame):
    raise TooLongError


def guarded(data):
    """Return what ``attempt`` does, in bounded time."""
    signal.signal(signal.SIGVTALRM, _too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)
    try:
        return attempt(data)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def where(error):
    """Return what tells one finding from another: its kind and the engine's innermost line."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "powerlab" in frame.filename]
    place = f"{Path(frames[-1].filename).stem}_{frames[-1].name}" if frames else "target"
    if not any("/powerlab/engine/" in frame.filename for frame in frames) or not frames:
        place = "target"
    return f"{type(error).__name__}-{place}"


def keep(folder, data, name=None):
    path = folder / (name or f"{hashlib.sha1(data).hexdigest()[:12]}.onnx")
    if not path.exists():
        path.write_bytes(data)
    return path


def fuzz(folder, seed, seconds, most_runs=math.inf):
    """Run the corpus, then change inputs of it for some seconds, where what takes a new way joins it, or runs."""
    random, edges, learns = Random(seed), Edges(), most_runs == math.inf
    corpus_folder, findings = folder / "corpus", folder / "findings"
    now = folder / "now"
    corpus, runs, started = [], 0, time.monotonic()
    log = (folder / "log").open("a")

    def one(data):
        nonlocal runs
        runs += 1
        now.write_bytes(data)
        began = time.process_time()
        try:
            with edges:
                for feature in guarded(data):
                    edges.add(feature)
        except (Exception, TooLongError) as error:  # whatever it is, it is a finding
            name = where(error)
            if len(list(findings.glob(f"{name}-*"))) < 5:
                path = keep(findings, data, f"{name}-{hashlib.sha1(data).hexdigest()[:8]}.onnx")
                path.with_suffix(".txt").write_text("".join(traceback.format_exception(error)))
                print(f"finding {path.name}: {str(error)[:200]}", flush=True)
        if time.process_time() - began > SLOW_SECONDS:
            path = keep(findings, data, f"slow-{hashlib.sha1(data).hexdigest()[:8]}.onnx")
            print(f"slow: {path.name}, {time.process_time() - began:.1f} s", flush=True)
        return edges.keep_new()

    for path in sorted(corpus_folder.iterdir()):
        corpus.append(path.read_bytes())
        one(corpus[-1])
    said = 0.0
    most_runs += runs
    while time.monotonic() - started < seconds and runs < most_runs:
        parent = random.choice(corpus[-len(corpus) // 5 :] if random.random() < 0.3 else corpus)
        data = mutated(parent, corpus, random)
        if one(data) and learns:
            corpus.append(data)
            keep(corpus_folder, data)
        if time.monotonic() - said > 30:
            said = time.monotonic()
            line = f"{said - started:.0f} s, {runs} runs, {len(corpus)} inputs, {len(edges.known)} edges"
            print(line, flush=True)
            print(line, file=log, flush=True)
    print(f"done: {runs} runs, {len(corpus)} inputs, {len(edges.known)} edges", file=log, flush=True)


if __name__ == "__main__":
    with_other_native_core()
    bounded()
    fuzz(Path(sys.argv[1]), int(sys.argv[2]), *map(float, sys.argv[3:]))
