import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_comparison_with_peers_prints_a_ratio_and_how_far_answers_are_apart():
    command = [
        sys.executable,
        ROOT / "bench/engine_vs_peers.py",
        "mobilenetv2",
        "--rounds",
        "3",
        "--peers",
        "onnxruntime",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    line = re.fullmatch(
        r"mobilenetv2 +batch +1 threads +2 +time / onnxruntime +([\d.]+) +"
        r"\(quartiles [\d.]+ to [\d.]+, 3 rounds; answers differ by ([\d.e+-]+) of the largest\)\n",
        done.stdout,
    )
    assert line is not None, done.stdout
    assert float(line[1]) > 0
    assert float(line[2]) < 1e-4
