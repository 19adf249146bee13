"""What the bench of gradients calls exact enough, and the gradients of its random networks without PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

from bench.training.gradients import exact_enough, network, verdict
from powerlab.engine.training import Sgd, TrainingSession


@pytest.mark.parametrize(
    ("ours", "theirs", "enough"),
    [
        ([2e-6, 6.8e-5], [1e-6, 1e-6], True),
        ([1e-6, 1.1e-4], [9e-5, 2e-6], False),
        ([3.0e-3, 1e-6], [1e-6, 5.8e-3], True),
        ([5.9e-3, 1e-6], [1e-6, 5.8e-3], False),
    ],
)
def test_an_error_is_held_to_a_bound_or_to_what_single_precision_can(ours, theirs, enough):
    assert exact_enough(ours, theirs) is enough


def test_networks_beyond_it_are_named_and_kinks_are_blamed_only_where_there_are_some():
    assert verdict([], smooth=True) == "No error of ours is above 0.0001, or else PyTorch's own in float32 is larger."
    assert verdict(["vgg16"], smooth=True) == "Above 0.0001 and above PyTorch's own: vgg16."
    assert verdict(["vgg16"], smooth=False).endswith("so look at --smooth.")


@pytest.mark.parametrize("seed", range(5))
def test_a_random_networks_gradient_says_how_its_loss_changes_on_any_number_of_threads(seed):
    graph = network(f"random-{seed}", 2)
    random = np.random.default_rng(seed)
    batch = random.standard_normal(graph.inputs[0].shape, np.float32), random.integers(0, 10, 2)

    def stepped(moves, threads=1):
        moved = {name: np.asarray(graph.constants[name] + move, np.float32) for name, move in moves.items()}
        session = TrainingSession(
            graph.rewritten(graph.nodes, constants=moved), optimizer=Sgd(rate=0.0), threads=threads
        )
        return session.step(*batch), session.gradients()

    loss, gradients = stepped({})
    for threads in (2, 3, 4):
        again, others = stepped({}, threads)
        assert again == loss
        for name, gradient in gradients.items():
            np.testing.assert_array_equal(others[name], gradient, err_msg=name)
    steepness = sum(float(np.square(gradient, dtype=np.float64).sum()) for gradient in gradients.values())
    step = 0.005 / steepness
    after, before = (stepped({name: sign * step * value for name, value in gradients.items()})[0] for sign in (1, -1))
    assert (after - before) / (2 * step) == pytest.approx(steepness, rel=0.02)
