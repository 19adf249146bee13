"""Python's garbage collector while a model loads: kept from running, and afterwards as it was."""

import gc

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.runtime.collection import uncollected


@pytest.fixture(autouse=True)
def collecting():
    gc.enable()
    yield
    gc.enable()


def test_nothing_is_collected_meanwhile():
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_model_that_cannot_be_read_leaves_the_collector_on(tmp_path):
    with pytest.raises(PowerlabError):
        Session(tmp_path / "absent.onnx", threads=1)
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    with uncollected():
        assert not gc.isenabled()
    assert not gc.isenabled()
