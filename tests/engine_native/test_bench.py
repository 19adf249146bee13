"""The comparison with peers as a whole, on a small model."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.campaign

ROOT = Path(__file__).parents[2]


def compare(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.engine.vs_peers", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=ROOT)


def test_one_configuration_against_one_peer(tmp_path: Path):
    file = tmp_path / "new" / "found.json"
    done = compare(
        "fcn5", "--threads", "2", "--batch", "1", "--peers", "onnxruntime", "--seconds", "0.2", "--json", file
    )
    assert done.returncode == 0, done.stderr
    assert "1/1 fcn5 batch 1 threads 2: " in done.stderr
    assert "Geometric mean over 1 cells" in done.stdout
    assert str(file) in done.stdout.replace("\n", "")
    found = json.loads(file.read_text())
    assert set(found["versions"]) == {"builtin", "onnxruntime"}
    assert found["machine"]["cores"] >= 1
    (cell,) = found["cells"]
    assert (cell["model"], cell["batch_size"], cell["threads"]) == ("fcn5", 1, 2)
    assert cell["best_peer"] == "onnxruntime"
    peer = cell["engines"]["onnxruntime"]
    assert peer["largest_difference"] < 1e-4
    assert 0 < peer["latency_ms"]["min"] <= peer["latency_ms"]["median"]
    assert peer["ratio"]["low"] <= peer["ratio"]["median"] <= peer["ratio"]["high"]
    assert cell["others_cores"] >= 0
    assert len(peer["turns_ms"]) == cell["rounds"] >= 3


def test_a_model_that_does_not_exist_is_one_sentence():
    done = compare("resnet51", "--peers", "onnxruntime")
    assert done.returncode == 1
    assert done.stderr.startswith("'resnet51' is neither a model of the zoo (")
    assert done.stderr.count("\n") == 1
