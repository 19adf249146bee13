"""Vulkan's validation layers, synchronisation included, say what they see; here, and around most modules beside this.

The modules are in ``conftest.py``: all operators, all networks, every way to compute a convolution.
"""

from __future__ import annotations

import pytest
import validating

from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.gpu.model import GpuModel
from powerlab.engine.passes import optimise


def squeezenet(**choices):
    graph = optimise(load_graph("squeezenet", {"x": (1, 3, 32, 32)}, None), for_cores=False)
    model = GpuModel(graph, **choices)
    return model, synthetic_inputs(model.inputs, 1, model.dtypes)


def test_without_barriers_the_layers_see_hazards(capfd):
    if not validating.installed():
        pytest.skip("Vulkan's validation layers are not installed (Debian: vulkan-validationlayers)")
    model, inputs = squeezenet(synchronised=False)
    model.run(inputs)
    found = validating.said(capfd)
    assert "SYNC-HAZARD-READ-AFTER-WRITE" in found
    assert "SYNC-HAZARD-WRITE-AFTER" in found


def test_they_are_silent_about_weights_that_are_staged_and_about_every_kind_of_run():
    model, inputs = squeezenet(host_constants=False)
    model.run(inputs), model.poison(), model.timed(inputs), model.repeat(inputs, 0, 3, 2)
