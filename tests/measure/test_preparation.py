"""Pictures into inputs: what is cut out, how it is scaled, and which models take pictures at all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from powerlab.domain.errors import PowerlabError
from powerlab.measure.preprocessing import PICTURE_SIDE, Pictures, picture_input

MEAN = np.array([0.485, 0.456, 0.406])
STD = np.array([0.229, 0.224, 0.225])
COLOUR = np.array([10, 200, 77], dtype=np.uint8)


def pixels_of(pictures: Pictures) -> np.ndarray:
    return pictures._pixels


def showing(shape: tuple[int, int, int, int], pixels: np.ndarray) -> np.ndarray:
    """Return the input made of given pixels instead of random ones."""
    pictures = Pictures(shape, seed=0)
    pictures._pixels = pixels
    return pictures.prepared()


def brightness(prepared: np.ndarray) -> np.ndarray:
    """Undo the normalisation: 0 to 255, NCHW."""
    return (prepared * STD[:, None, None] + MEAN[:, None, None]) * 255


def test_a_224_model_gets_the_centre_of_a_256_picture_pixel_by_pixel():
    pictures = Pictures((2, 3, 224, 224), seed=5)
    prepared = pictures.prepared()
    assert prepared.dtype == np.float32
    assert prepared.shape == (2, 3, 224, 224)
    assert prepared.flags["C_CONTIGUOUS"]
    centre = pixels_of(pictures)[:, 16:240, 16:240].astype(float)
    expected = ((centre / 255 - MEAN) / STD).transpose(0, 3, 1, 2)
    assert_allclose(prepared, expected, atol=1e-5)


@given(height=st.integers(1, 400), width=st.integers(1, 400))
@settings(max_examples=20, deadline=None)
def test_a_picture_of_one_colour_stays_that_colour_at_every_size(height, width):
    pixels = np.broadcast_to(COLOUR, (1, PICTURE_SIDE, PICTURE_SIDE, 3))
    prepared = showing((1, 3, height, width), pixels)
    assert prepared.shape == (1, 3, height, width)
    assert_allclose(brightness(prepared)[0], np.broadcast_to(COLOUR[:, None, None], (3, height, width)), atol=1e-2)


@pytest.mark.parametrize(("height", "width"), [(299, 299), (112, 112), (320, 160), (28, 28), (600, 600)])
def test_a_ramp_stays_a_ramp_around_the_same_middle(height, width):
    """Bilinear interpolation is exact for what is linear; half a pixel off would show in the middle."""
    across = np.arange(PICTURE_SIDE, dtype=np.uint8)[None, None, :, None]
    ramp = np.broadcast_to(across, (1, PICTURE_SIDE, PICTURE_SIDE, 3))
    found = brightness(showing((1, 3, height, width), ramp))[0, 0]
    side = round(max(height, width) * 256 / 224)
    steps = np.diff(found[0])
    assert_allclose(steps, PICTURE_SIDE / side, atol=1e-2)
    assert found.mean() == pytest.approx((PICTURE_SIDE - 1) / 2, abs=0.51 * PICTURE_SIDE / side)
    assert_allclose(found, np.broadcast_to(found[0], found.shape), atol=1e-3)
    turned = brightness(showing((1, 3, width, height), ramp.transpose(0, 2, 1, 3)))[0, 0]
    assert_allclose(turned, found.T, atol=1e-2)


def test_the_same_seed_shows_the_same_pictures_and_another_one_others():
    shape = (1, 3, 32, 32)
    assert np.array_equal(Pictures(shape, 3).prepared(), Pictures(shape, 3).prepared())
    assert not np.array_equal(Pictures(shape, 3).prepared(), Pictures(shape, 4).prepared())


def test_pictures_are_prepared_anew_each_time():
    pictures = Pictures((1, 3, 64, 64), 1)
    first = pictures.prepared()
    kept = first.copy()
    second = pictures.prepared()
    second[:] = 0
    assert np.array_equal(first, kept)


def test_a_model_with_one_input_of_pictures_is_taken():
    assert picture_input("resnet50", {"x": np.zeros((4, 3, 224, 224), np.float32)}) == "x"


@pytest.mark.parametrize(
    "inputs",
    [
        pytest.param({"tokens": np.zeros((1, 128), np.float32)}, id="no picture"),
        pytest.param({"x": np.zeros((1, 1, 28, 28), np.float32)}, id="grey"),
        pytest.param({"x": np.zeros((1, 224, 224, 3), np.float32)}, id="channels last"),
        pytest.param({"x": np.zeros((1, 3, 224, 224), np.int64)}, id="integers"),
        pytest.param({"x": np.zeros((1, 3, 8, 8), np.float32), "y": np.zeros((1, 3, 8, 8), np.float32)}, id="two"),
        pytest.param({}, id="none"),
    ],
)
def test_other_models_are_refused_with_what_they_take(inputs):
    with pytest.raises(PowerlabError, match=r"but bert takes .*; leave the preparation outside\."):
        picture_input("bert", inputs)
