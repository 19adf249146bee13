"""The engine on a GPU as one of the engines under test."""

from __future__ import annotations

import numpy as np
import pytest

from powerlab.backends.base import LoadOptions
from powerlab.backends.registry import BACKENDS, load
from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Processor
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
