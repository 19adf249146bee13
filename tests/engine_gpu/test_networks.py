"""The zoo's networks on a GPU against the processor, at small sizes; and what a model on a GPU promises."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import LARGE, SMALL, agrees

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.frontend.zoo import ZOO
from powerlab.engine.gpu import device

TOLERANCE = 1e-4


@pytest.mark.parametrize("name", SMALL)
def test_a_network_agrees_with_the_processor(name):
    agrees(name, tolerance=TOLERANCE)


@pytest.mark.campaign(minutes=1)
@pytest.mark.parametrize("name", LARGE)
def test_a_large_network_agrees_with_the_processor(name):
    agrees(name, tolerance=TOLERANCE)


def test_no_network_of_the_zoo_is_left_out():
    assert {*SMALL, *LARGE} == set(ZOO)


def test_a_run_is_one_submit_and_its_steps_are_timed():
    session, inputs = agrees("squeezenet", tolerance=TOLERANCE)
    before = session._model._device.submits
    session.run(inputs)
    assert session._model._device.submits == before + 1
    steps = session.profile(inputs)
    assert [(kernel, label) for kernel, label, _ in steps] == session.steps()
    assert all(ns >= 0 for *_, ns in steps)
    assert sum(ns for *_, ns in steps) > 0
    assert len(session.work) == len(steps) == len(session.choices)
    assert session.repeat(inputs, 0, len(steps), 2) > 0


def test_several_images_are_those_one_by_one():
    both = Session("squeezenet", device="gpu", shapes={"x": (2, 3, 32, 32)})
    inputs = synthetic_inputs(both.inputs, 2, both.dtypes)
    alone = Session("squeezenet", device="gpu", shapes={"x": (1, 3, 32, 32)})
    whole = both.run(inputs)["y"]
    for image in range(2):
        np.testing.assert_allclose(alone.run({"x": inputs["x"][image : image + 1]})["y"][0], whole[image], rtol=1e-5)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_slices_are_batches_of_their_own(precision):
    """Side by side and with the same weights, but without a word between them."""
    choices = {"device": "gpu", "precision": precision}
    cut = Session("squeezenet", batch_size=4, slices=2, shapes={"x": (4, 3, 32, 32)}, **choices)
    alone = Session("squeezenet", shapes={"x": (2, 3, 32, 32)}, **choices)
    inputs = synthetic_inputs(cut.inputs, 4, cut.dtypes)
    whole = cut.run(inputs)["y"]
    parts = [alone.run({"x": inputs["x"][first : first + 2]})["y"] for first in (0, 2)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    assert cut.steps() == alone.steps()
    assert cut._model.barriers == alone._model.barriers
    assert len(cut.profile(inputs)) == len(cut.steps())
    assert cut.repeat(inputs, 0, len(cut.steps()), 1) > 0


def test_slices_on_several_queues_are_those_on_one(monkeypatch):
    """Where the device has one, it takes both command buffers of a run one after the other."""
    choices = {"device": "gpu", "batch_size": 3, "slices": 3, "shapes": {"x": (3, 3, 32, 32)}}
    on_one = Session("squeezenet", **choices)
    monkeypatch.setattr(device, "queues_here", lambda: 2)
    on_two = Session("squeezenet", queues=2, **choices)
    inputs = synthetic_inputs(on_one.inputs, 4, on_one.dtypes)
    before = on_two._model._device.submits
    for _ in range(3):
        np.testing.assert_array_equal(on_two.run(inputs)["y"], on_one.run(inputs)["y"])
    assert on_two._model._device.submits == before + 3 * (2 + 1)
    assert len(on_two.profile(inputs)) == len(on_two.steps())
    with pytest.raises(PowerlabError, match="has 2 queues, so slices cannot be spread over 3; ask for 2 at most"):
        Session("squeezenet", queues=3, **choices)
    monkeypatch.setattr(device, "queues_here", lambda: 1)
    with pytest.raises(PowerlabError, match="has one queue, so slices cannot be spread over 2; leave the queues out"):
        Session("squeezenet", queues=2, **choices)


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"threads": 2}, "a GPU has no threads"),
        ({"slices": 2}, "cannot be cut evenly into 2 slices"),
        ({"slices": 2, "queues": 4}, "a batch of 2 slices cannot be spread over 4 queues"),
        ({"queues": 0}, "queues must be an integer of at least 1, not 0"),
        ({"precision": "int8w"}, "fp32, fp16, int8 alone yet, not int8w"),
    ],
)
def test_what_a_gpu_has_not_is_refused(choices, said):
    with pytest.raises(PowerlabError, match=said):
        Session("squeezenet", device="gpu", **choices)


def test_a_processor_has_no_queues():
    with pytest.raises(PowerlabError, match="queues=2"):
        Session("squeezenet", 2, slices=2, queues=2)


def test_there_is_no_third_device():
    with pytest.raises(PowerlabError, match="device must be cpu or gpu, not 'tpu'"):
        Session("squeezenet", device="tpu")
