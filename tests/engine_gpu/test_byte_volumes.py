"""Convolutions over volumes in bytes on a GPU: the processor's bytes, by dot products and without."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import compared
from engine_models import load_bytes
from msgspec.structs import replace
from test_bytes import KINDS
from test_volumes import WINDOWS, graph_of
from volume_networks import unet, video_network

from powerlab.engine.gpu import model as gpu_model
from powerlab.engine.gpu.choice.candidates import candidates
from powerlab.engine.gpu.choice.method import BYTES_CACHED, BYTES_SHARED, Numbers
from powerlab.engine.gpu.device import this_target
from powerlab.engine.gpu.lowering import lower
from powerlab.engine.passes import optimise
from powerlab.engine.prepared import prepared
from powerlab.engine.quantization.calibrate import calibrate, random_batches
from powerlab.engine.quantization.prepare import prepared_for_quantization
from powerlab.engine.quantization.quantize import Options, quantize_graph

RANDOM = np.random.default_rng(9)
SAME = 1e-6
IN_BYTES = [name for name in WINDOWS if name not in ("dilations", "one pixel, or none")]
"""Others stay floats, on the processor, too."""


@pytest.fixture(autouse=True)
def whole_numbers(monkeypatch):
    """Keep the processor from floats where they are faster: they make another byte of one in a thousand."""
    monkeypatch.setattr(prepared, "with_faster_floats", lambda graph, tier: graph)


@pytest.fixture(params=KINDS)
def kernel(request, monkeypatch):
    """Return the kernel of convolutions over volumes on a GPU that has some of what this one has."""
    lacks, name = KINDS[request.param]
    target = replace(this_target(), **lacks)
    monkeypatch.setattr(gpu_model, "this_target", lambda: target)
    return f"volume_{name}"


def in_bytes(graph):
    ready = prepared_for_quantization(graph)
    return quantize_graph(ready, calibrate(ready, random_batches(ready, 8)), Options()).graph


def kernels(model):
    return [kernel for kernel, _ in model.steps()]


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("window", IN_BYTES)
def test_convolutions(window, residual, kernel):
    made = kernels(compared(in_bytes(graph_of(WINDOWS[window], residual=residual)), tolerance=SAME))
    assert kernel in made
    assert not any(name.startswith(("volume_conv", "volume_tiled")) for name in made)


@pytest.mark.parametrize("network", [video_network, unet])
def test_networks(network, kernel):
    assert kernels(compared(in_bytes(load_bytes(network(RANDOM))), tolerance=SAME)).count(kernel) > 2


def test_all_tiles_give_the_same_bytes():
    graph = in_bytes(graph_of(WINDOWS["all around"], (22, 40), residual=True))
    asked = []
    lower(
        optimise(graph, for_cores=False),
        this_target(),
        choose=lambda shape, numbers: asked.append(shape) or candidates(shape, this_target(), numbers)[0],
    )
    methods = candidates(asked[0], replace(this_target(), byte_matrices=()), Numbers.INT8)
    assert {one.kernel for one in methods} == {BYTES_CACHED, BYTES_SHARED}
    for method in methods:
        made = kernels(compared(graph, tolerance=SAME, choose=lambda *_, one=method: one))
        assert any(name.startswith(f"volume_{method.kernel}") for name in made)
