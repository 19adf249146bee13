"""Fuzz the engine, from ONNX files to answers, for as long as you like; exits with 1 where there are findings.

    python -m fuzz --minutes 30 [--sanitized] [--seed 1] [--folder build/fuzz]

Findings lie in FOLDER/findings, each with what was said about it. What took new ways through the engine stays in
FOLDER/corpus, where the next run begins. ``python -m fuzz.smallest FOLDER/corpus TARGET`` keeps the least of it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from fuzz import native, seeds

HERE = Path(__file__).parent
HANGS_AFTER_SECONDS = 600
"""An input may take that long, waiting for other processes included, before it counts as one that never ends."""


def main():
    parser = argparse.ArgumentParser(prog="python -m fuzz")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--sanitized", action="store_true", help="with address and undefined-behaviour sanitizers")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"))
    options = parser.parse_args()
    folder = options.folder
    for name in ("corpus", "findings"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for path in (HERE / "corpus").iterdir():
        shutil.copy(path, folder / "corpus")
    seeds.write(folder / "corpus")
    environment = dict(os.environ)
    if options.sanitized:
        environment |= native.environment(native.build(folder))
    end, seed = time.monotonic() + 60 * options.minutes, options.seed
    while (left := end - time.monotonic()) > 0:
        _worker(folder, seed, left, environment)
        seed += 1
    findings = sorted((folder / "findings").glob("*.onnx"))
    print(f"{len(findings)} findings in {folder / 'findings'}" if findings else "nothing found")
    return 1 if findings else 0


def _worker(folder, seed, seconds, environment):
    """Run a worker to its end; where it crashes or hangs, what it was at is a finding."""
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-X",
        "faulthandler",
        "-m",
        "fuzz.worker",
        folder,
        str(seed),
        str(seconds),
    ]
    now = folder / "now"
    now.unlink(missing_ok=True)  # of an earlier run, it would look like an input that hangs
    with (folder / "errors").open("w+") as errors, subprocess.Popen(command, stderr=errors, env=environment) as worker:
        while worker.poll() is None:
            time.sleep(1)
            if now.exists() and time.time() - now.stat().st_mtime > HANGS_AFTER_SECONDS:
                worker.kill()
                worker.wait()
        if worker.returncode != 0:
            name = f"crash{worker.returncode}-{seed}"
            now.touch()  # a worker may end before it began
            shutil.copy(now, folder / "findings" / f"{name}.onnx")
            errors.seek(0)
            (folder / "findings" / f"{name}.txt").write_text(errors.read())
            print(f"finding {name}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
