"""What the bench of gradients calls exact enough."""

from __future__ import annotations

import pytest

from bench.training.gradients import exact_enough, verdict


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
