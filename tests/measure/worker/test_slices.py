"""A batch in slices: the same results, at the same time, on a share of the threads each."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from powerlab.backends.base import LoadOptions
from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Preparation, Workload
from powerlab.engine import Session
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.passes import optimise
from powerlab.measure.worker.inference import Slice, Slices, load_slices

BUILTIN = "powerlab.backends.builtin"


class Meeting:
    """A backend that returns only when all slices are inside it at the same time."""

    def __init__(self, barrier: threading.Barrier) -> None:
        self._barrier = barrier
        self.threads: list[int] = []

    def inputs(self, seed: int) -> dict[str, np.ndarray]:
        return {"x": np.full((1, 2), seed, np.float32)}

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        self._barrier.wait(timeout=30)
        self.threads.append(threading.get_ident())
        return {"y": inputs["x"] * 2}


def meeting(count: int) -> tuple[Slices, list[Meeting]]:
    barrier = threading.Barrier(count)
    backends = [Meeting(barrier) for _ in range(count)]
    return Slices([Slice(one, lambda i=i, one=one: one.inputs(i)) for i, one in enumerate(backends)]), backends


@pytest.mark.parametrize("count", [1, 2, 4])
def test_slices_run_at_the_same_time_and_their_outputs_stay_in_order(count):
    slices, backends = meeting(count)
    for _ in range(3):
        outputs = slices.run()
        assert [float(output["y"][0, 0]) for output in outputs] == [2.0 * number for number in range(count)]
    slices.close()
    assert set(backends[0].threads) == {threading.get_ident()}, "the caller runs the first one"
    assert len({thread for backend in backends for thread in backend.threads}) == count


def test_a_fault_in_any_slice_is_raised():
    slices, backends = meeting(2)

    def fail(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        backends[1]._barrier.wait(timeout=30)
        raise MemoryError("cannot allocate 7.5 GiB")

    backends[1].run = fail  # type: ignore[method-assign]
    with pytest.raises(MemoryError):
        slices.run()
    slices.close()


@pytest.mark.parametrize(
    ("batch_size", "slices", "threads", "expected"),
    [(8, 1, 4, (8, 4)), (8, 2, 4, (4, 2)), (8, 4, 4, (2, 1)), (4, 4, 2, (1, 1))],
)
def test_every_slice_has_its_share_of_the_batch_and_of_the_threads(monkeypatch, batch_size, slices, threads, expected):
    asked: list[LoadOptions] = []

    def load(module: str, options: LoadOptions) -> Meeting:
        asked.append(options)
        return Meeting(threading.Barrier(1))

    monkeypatch.setattr("powerlab.measure.worker.inference.load", load)
    monkeypatch.setattr("powerlab.measure.worker.inference.cuts_batches", lambda module: module == "cuts batches")
    workload = Workload(model="net", batch_size=batch_size, slices=slices, precision="fp16")
    load_slices("module", workload, threads, spin_us=50, seed=1).close()
    assert len(asked) == slices
    own = LoadOptions(model="net", batch_size=expected[0], threads=expected[1], precision="fp16", spin_us=50)
    assert set(asked) == {own}
    asked.clear()
    load_slices("cuts batches", workload, threads, spin_us=50, seed=1).close()
    assert asked == [replace(own, batch_size=batch_size, threads=slices * expected[1], slices=slices)]


def test_the_built_in_engine_cuts_the_batch_to_the_same_bits():
    workload = Workload(model="mobilenetv2", batch_size=4)
    whole = load_slices(BUILTIN, workload, 2, None, seed=11)
    cut = load_slices(BUILTIN, replace(workload, slices=2), 2, None, seed=11)
    (expected,), (found,) = whole.run(), cut.run()
    cut.close()
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name], value) for name, value in expected.items())


def test_slices_that_prepare_their_inputs_compute_what_the_whole_batch_does():
    """To the last bit where the engine takes the same algorithms at both sizes; they may differ by rounding alone."""
    workload = Workload(model="mobilenetv2", batch_size=4, slices=2, preparation=Preparation.INSIDE)
    cut = load_slices(BUILTIN, workload, 2, None, seed=11)
    parts = [one.inputs() for one in (cut._first, *cut._others)]
    assert not any(np.array_equal(parts[0][name], parts[1][name]) for name in parts[0]), "each has pictures of its own"
    found = cut.run()
    cut.close()
    whole = Session(optimise(load_graph("mobilenetv2", batch_size=4)), threads=2)
    together = whole.run({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
    for name, expected in together.items():
        apart = np.abs(np.concatenate([part[name] for part in found]) - expected).max()
        assert apart <= 1e-5 * np.abs(expected).max()


def test_pictures_are_prepared_in_every_inference(monkeypatch):
    made = []
    monkeypatch.setattr(
        "powerlab.measure.preprocessing.Pictures.prepared", lambda self: made.append(self) or np.zeros(1)
    )
    backend = Meeting(threading.Barrier(1))
    backend.inputs = lambda seed: {"x": np.zeros((2, 3, 8, 8), np.float32)}  # type: ignore[method-assign]
    monkeypatch.setattr("powerlab.measure.worker.inference.load", lambda module, options: backend)
    for preparation, expected in ((Preparation.OUTSIDE, 0), (Preparation.INSIDE, 3)):
        made.clear()
        slices = load_slices("module", Workload(model="net", batch_size=2, preparation=preparation), 1, None, seed=1)
        for _ in range(3):
            slices.run()
        assert len(made) == expected


def test_a_precision_the_engine_has_not_is_one_sentence():
    with pytest.raises(PowerlabError, match=r"builtin computes in .*fp32.*not in 'int3'"):
        load_slices(BUILTIN, Workload(model="mobilenetv2", batch_size=1, precision="int3"), 1, None, seed=1)


@pytest.mark.parametrize("spin_us", [0, 2000])
def test_the_engine_computes_the_same_however_long_it_spins(spin_us):
    """The spin is a matter of waiting alone."""
    found = load_slices(BUILTIN, Workload(model="mobilenetv2", batch_size=1), 2, spin_us, seed=3)
    usual = load_slices(BUILTIN, Workload(model="mobilenetv2", batch_size=1), 2, None, seed=3)
    (one,), (other,) = found.run(), usual.run()
    assert all(np.array_equal(one[name], other[name]) for name in other)


@pytest.mark.parametrize("spin_us", [-1, 10**9, 1.5, True])
def test_a_spin_that_is_no_time_is_refused(spin_us):
    with pytest.raises(PowerlabError, match="spin_us must be an integer from 0 to 1000000"):
        Session("mobilenetv2", threads=1, spin_us=spin_us)
