"""How much memory loading and running a model takes at most, seen from outside the engine: in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from powerlab.backends.onnx_export import export_onnx
from powerlab.engine.frontend.load import load_graph

MOST = 1.3
"""Times the weights, as the chosen algorithms read them (Winograd's are larger), and the largest live activations."""

PROGRAM = """
import re, sys
import numpy as np
from powerlab.engine import Session
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.codegen import lower
from powerlab.engine.runtime.memory import live_bytes
from powerlab.engine.passes import optimise, optimise_for_others
from powerlab.engine.target.tiers import choose_tier

def status(name):
    with open("/proc/self/status") as file:
        return 1024 * int(re.search(name + r":\\s+(\\d+)", file.read()).group(1))

def run(session):
    session.run({name: np.zeros(shape, np.float32) for name, shape in session.inputs.items()})

run(Session("squeezenet", threads=2))  # what every first session takes once
before = status("VmRSS")
slices = int(sys.argv[2])
shapes = {info.name: (slices, *info.shape[1:]) for info in load_graph(sys.argv[1]).inputs}
session = Session(sys.argv[1], threads=2, shapes=shapes, slices=slices)
run(session)
peak, after = status("VmHWM") - before, status("VmRSS") - before
# Slices compute by the algorithms, and so with the weights, of the whole batch.
program = lower(optimise(load_graph(sys.argv[1], shapes)), choose_tier(), session.threads // slices)
weights = [part.weights for step in program.steps for part in (step, *step.parts) if part.weights is not None]
least = live_bytes(optimise_for_others(load_graph(sys.argv[1], shapes))) + sum(each.nbytes for each in weights)
print(peak / least, after / least)
"""


def memory(model, slices=1):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, model, str(slices)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    peak, after = map(float, done.stdout.split())
    return peak, after


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel does not say how much memory was used")
@pytest.mark.parametrize("model", ["resnet50", "mobilenetv2"])
def test_a_model_of_the_zoo_takes_little_more_than_its_weights_and_activations(model):
    peak, after = memory(model)
    assert peak <= MOST
    assert after > 0.7  # else the judge is wrong; chains keep less than the activations one by one


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel does not say how much memory was used")
def test_slices_have_the_weights_once():
    """With a copy each they would take twice the weights of ResNet-50, which are most of its memory."""
    peak, after = memory("resnet50", slices=2)
    assert peak <= MOST
    assert after > 0.7


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel does not say how much memory was used")
def test_a_model_file_takes_no_more(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(export_onnx(load_graph("resnet50")))
    peak, after = memory(str(path))
    assert peak <= MOST
    assert after > 0.8
