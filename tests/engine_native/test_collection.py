"""Python's garbage collector while a model loads: kept from running, and afterwards as it was."""

import gc
import subprocess
import sys

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


@pytest.mark.parametrize("model", ["squeezenet", "lstm2"])
def test_loading_leaves_nothing_to_collect(model):
    program = f"""
import gc
from powerlab.engine import Session
Session({model!r}, threads=1)  # what it imports leaves something
gc.collect()
gc.disable()
Session({model!r}, threads=1)
assert gc.collect() == 0
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_was_made_counts_as_old():
    program = """
import gc
from powerlab.engine.runtime.collection import uncollected
collections = []
gc.callbacks.append(lambda phase, info: collections.append(info["generation"]))
with uncollected():
    kept = [[number] for number in range(5000)]
more = [number for number in ([], [], [])]
assert not collections, collections
assert gc.get_freeze_count() == 0
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_others_keep_from_collection_stays_so():
    program = """
import gc
from powerlab.engine.runtime.collection import uncollected
gc.freeze()
with uncollected():
    kept = [[number] for number in range(5000)]
assert gc.get_freeze_count() > 0
"""
    subprocess.run([sys.executable, "-c", program], check=True)
