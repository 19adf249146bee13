"""No loader, no driver, another number: a sentence; and memory, time and loss of a device are failed runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.engine.gpu import device
from powerlab.engine.gpu.model import GpuModel
from powerlab.engine.ir.graph import Graph, Node, TensorInfo

X, Y = TensorInfo("x", (1, 8)), TensorInfo("y", (1, 8))
RELU = Graph(
    "relu", (Node("Clamp", "relu", ("x",), ("y",), {"clamp": (0.0, np.inf)}),), (X,), (Y,), {}, {"x": X, "y": Y}
)

ONE_RUN = """
import sys, numpy as np
from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
try:
    session = Session("squeezenet", device="gpu", shapes={"x": (1, 3, 32, 32)})
    session.run({"x": np.zeros((1, 3, 32, 32), np.float32)})
except PowerlabError as error:
    sys.exit(f"sentence: {error}")
print("ran")
"""


def in_process(code=ONE_RUN, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_without_a_loader_the_device_gpu_says_what_to_install(monkeypatch):
    monkeypatch.setattr(device, "LIBRARY", "libno-such-vulkan.so.1")
    device.library.cache_clear()
    try:
        with pytest.raises(PowerlabError, match=r"libno-such-vulkan.so.1 is not here; install it .*libvulkan1"):
            GpuModel(RELU)
    finally:
        device.library.cache_clear()


def test_a_library_that_is_no_loader_is_refused(monkeypatch):
    monkeypatch.setattr(device, "LIBRARY", "libm.so.6")
    device.library.cache_clear()
    try:
        with pytest.raises(PowerlabError, match=r"libm\.so\.6 is no Vulkan loader"):
            device.devices()
    finally:
        device.library.cache_clear()


def test_without_a_driver_the_device_gpu_says_what_to_install(tmp_path):
    done = in_process(VK_DRIVER_FILES=str(tmp_path / "none.json"), VK_ICD_FILENAMES=str(tmp_path / "none.json"))
    assert done.returncode == 1
    assert "sentence: The device gpu cannot be used: no Vulkan driver is here; install your GPU's" in done.stderr


def test_a_driver_of_nvidia_that_does_not_load_says_what_it_needs(tmp_path):
    (tmp_path / "nvidia_icd.json").write_text("{}")
    code = f"""
from pathlib import Path
from powerlab.engine.gpu import device
device.MANIFESTS = (Path({str(tmp_path / "none")!r}), Path({str(tmp_path)!r}))
{ONE_RUN}"""
    none = str(tmp_path / "none.json")
    done = in_process(code, VK_DRIVER_FILES=none, VK_ICD_FILENAMES=none)
    assert done.returncode == 1
    assert "NVIDIA's Vulkan driver is installed, but does not load; it needs GLVND and EGL" in done.stderr
    missing = in_process(code.replace(".MANIFESTS", ".LIBRARY = 'libnone.so.1'; device.MANIFESTS"))
    assert "libnone.so.1 is not here; install it" in missing.stderr


def test_the_gpu_may_be_chosen_by_its_number(monkeypatch):
    monkeypatch.setenv(device.NUMBER, "7")
    with pytest.raises(PowerlabError, match="POWERLAB_GPU is '7'; it must be a number below"):
        device.chosen()
    monkeypatch.setenv(device.NUMBER, "0")
    assert device.chosen() == 0


def test_what_does_not_fit_is_a_sentence():
    many = TensorInfo("x", (1, 1 << 22))
    made = TensorInfo("y", many.shape)
    graph = Graph("large", RELU.nodes, (many,), (made,), {}, {"x": many, "y": made})
    plan = GpuModel(graph)
    native = device.native()
    with pytest.raises(MemoryError, match="not enough memory left; use a smaller batch or model"):
        native.Plan(plan._device, [4, 4, 1 << 44, 4], True)


def test_work_that_takes_too_long_fails_and_the_process_ends(tmp_path):
    code = """
import sys, numpy as np
from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.gpu.model import GpuModel
from powerlab.engine.passes import optimise
graph = optimise(load_graph("squeezenet", {"x": (1, 3, 32, 32)}, None), for_cores=False)
model = GpuModel(graph, timeout_s=1e-6)
for _ in range(2):
    try:
        model.run({"x": np.zeros((1, 3, 32, 32), np.float32)})
    except PowerlabError as error:
        print(error)
"""
    done = in_process(code)
    assert "the GPU did not finish within 0 ms" in done.stdout
    assert "the GPU is still at work that took too long; start a new process." in done.stdout
    assert done.returncode == 0, done.stderr


def test_a_device_that_is_lost_fails_the_run_and_the_process_ends(tmp_path):
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler is installed")
    library = tmp_path / "liblosing.so"
    source = Path(__file__).with_name("losing_device.cpp")
    command = [compiler, "-std=c++20", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    done = in_process(f"from powerlab.engine.gpu import device; device.LIBRARY = {str(library)!r}\n{ONE_RUN}")
    assert done.returncode == 1
    assert "sentence: the GPU cannot finish its work: it was lost (reset by its driver, or unplugged)" in done.stderr


def test_two_processes_share_a_device():
    processes = [subprocess.Popen([sys.executable, "-c", ONE_RUN], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=200)[0].strip() for process in processes] == ["ran", "ran"]


def test_weights_may_go_through_a_staging_buffer():
    device.opened.cache_clear()
    found = GpuModel(RELU, host_constants=False).run({"x": np.arange(-4, 4, dtype=np.float32)[None]})["y"]
    assert found.tolist() == [[0, 0, 0, 0, 0, 1, 2, 3]]
