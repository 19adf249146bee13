"""The engine from a wheel of ``make wheels`` (clang) beside this checkout's (the system's compiler).

    make wheels && python -m bench.engine.wheel_speed [--rounds 12]

Installs this machine's wheel into an environment of its own and times both in turn, each in a process of its own, with
one thread; prints the ratio of the medians, wheel / checkout.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODELS = ("resnet50", "mobilenetv2", "yolov3", "lstm2")
ONE_ROUND = """
import sys, time, numpy
from powerlab.engine import Session
session = Session(sys.argv[1], threads=1)
inputs = {name: numpy.ones(shape, numpy.float32) for name, shape in session.inputs.items()}
for _ in range(3):
    session.run(inputs)
times = []
for _ in range(10):
    start = time.perf_counter()
    session.run(inputs)
    times.append(time.perf_counter() - start)
print(sorted(times)[len(times) // 2])
"""


def _time_s(python: Path | str, model: str) -> float:
    command = [python, "-I", "-c", ONE_ROUND, model]
    return float(subprocess.run(command, check=True, capture_output=True, text=True, cwd="/").stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    rounds = parser.parse_args().rounds
    wheels = sorted((ROOT / "dist").glob(f"powerlab-*_{platform.machine()}.whl"))
    if not wheels:
        sys.exit("there is no wheel for this machine in dist/; run `make wheels` first")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        python = Path(folder, "bin", "python")
        subprocess.run([sys.executable, "-m", "pip", "-q", "--python", python, "install", wheels[-1]], check=True)
        for model in MODELS:
            pairs = [(_time_s(python, model), _time_s(sys.executable, model)) for _ in range(rounds)]
            wheel, checkout = (statistics.median(column) for column in zip(*pairs, strict=True))
            ratios = sorted(first / second for first, second in pairs)
            print(
                f"{model:12} wheel {1e3 * wheel:.2f} ms, checkout {1e3 * checkout:.2f} ms, "
                f"ratio {statistics.median(ratios):.3f} ({ratios[0]:.3f}-{ratios[-1]:.3f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
