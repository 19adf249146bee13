"""The engine on a GPU as one of the engines under test."""

from __future__ import annotations

import numpy as np
import pytest

from powerlab.backends.base import LoadOptions
from powerlab.backends.registry import BACKENDS, backend_module, load
from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Processor, WorkloadKind
from powerlab.engine.gpu.device import chosen, devices


def options(processor=Processor.GPU, **more):
    return LoadOptions(**{"model": "lstm2", "batch_size": 2, "threads": 1, "processor": processor, **more})


def test_it_computes_on_either_processor_and_names_the_gpu():
    on_gpu, on_cpu = (load(BACKENDS["builtin"], options(processor)) for processor in (Processor.GPU, Processor.CPU))
    inputs = on_gpu.inputs(3)
    found, expected = on_gpu.run(inputs)["y"], on_cpu.run(inputs)["y"]
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
    used = devices()[chosen()]
    assert on_gpu.processor_name == f"{used.name}, {used.driver}"
    assert on_cpu.processor_name == ""


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"spin_us": 5}, "ask for no --spin-us"),
        ({"precision": "int8w"}, "int8w"),
        ({"slices": 3}, "cannot be cut evenly into 3 slices"),
    ],
)
def test_it_refuses_what_it_has_not(choices, said):
    with pytest.raises(PowerlabError, match=said):
        load(BACKENDS["builtin"], options(**choices))


@pytest.mark.parametrize("slices", [1, 2])
def test_it_trains_on_either_processor_and_tells_how_long_parts_took(slices):
    module = backend_module("builtin", WorkloadKind.TRAIN)
    choices = {"model": "squeezenet@32", "optimizer": "momentum", "slices": slices}
    on_gpu, on_cpu = (load(module, options(processor, **choices)) for processor in (Processor.GPU, Processor.CPU))
    batch = on_gpu.inputs(3)
    for _ in range(2):
        assert on_gpu.run(batch)["loss"][0] == pytest.approx(on_cpu.run(batch)["loss"][0], rel=1e-4)
    assert on_gpu.part_ns.keys() == on_cpu.part_ns.keys()
    used = devices()[chosen()]
    assert on_gpu.processor_name == f"{used.name}, {used.driver}"


def test_it_trains_in_float32_alone():
    with pytest.raises(PowerlabError, match="the engine builtin computes in fp32 here, not in 'bf16'"):
        load(backend_module("builtin", WorkloadKind.TRAIN), options(optimizer="sgd", precision="bf16"))
