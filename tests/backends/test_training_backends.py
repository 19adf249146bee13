"""Engines that train: their steps begin alike, learn, and every other engine refuses."""

from __future__ import annotations

import numpy as np
import pytest
from backend_answers import HERE

from powerlab.backends.base import LoadOptions
from powerlab.backends.registry import BACKENDS, backend_module, load
from powerlab.backends.training.batch import LABELS
from powerlab.domain.errors import PowerlabError
from powerlab.domain.training import OPTIMIZERS, TRAINERS
from powerlab.domain.workload import Workload, WorkloadKind
from powerlab.engine.training.optimizers import OPTIMIZERS as OF_THE_ENGINE
from powerlab.measure.worker.simulated_work import inference_work, query_works
from small_network import write_small_network


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_small_network(tmp_path_factory.mktemp("network") / "small.onnx"))


def trainer(engine: str, network: str, **more: object):
    options = LoadOptions(model=network, batch_size=4, threads=1, **{"optimizer": "sgd", **more})
    return load(backend_module(engine, WorkloadKind.TRAIN), options)


def test_a_plan_s_optimizers_are_those_of_the_engine():
    assert set(OPTIMIZERS) == set(OF_THE_ENGINE)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_steps_on_one_batch_lower_its_loss(network, optimizer):
    one = trainer("builtin", network, optimizer=optimizer)
    batch = one.inputs(3)
    assert {name: value.shape for name, value in batch.items()} == {"x": (4, 3, 32, 32), LABELS: (4,)}
    assert np.array_equal(one.inputs(3)[LABELS], batch[LABELS])
    losses = [float(one.run(batch)["loss"][0]) for _ in range(10)]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("engine", sorted({"builtin", *HERE} & set(TRAINERS)))
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_engine_here_learns_alike_from_the_same_batch(network, engine, optimizer):
    one, other = trainer("builtin", network, optimizer=optimizer), trainer(engine, network, optimizer=optimizer)
    batch = one.inputs(3)
    for _ in range(5):
        assert other.run(batch)["loss"][0] == pytest.approx(one.run(batch)["loss"][0], rel=1e-4)


def test_a_batch_may_be_cut_into_slices_of_a_step(network):
    whole, cut = trainer("builtin", network), trainer("builtin", network, slices=2)
    assert cut.run(cut.inputs(3))["loss"].shape == (1,)
    assert set(cut.part_ns) == set(whole.part_ns) == {"forward", "backward", "update"}


@pytest.mark.parametrize("engine", sorted(set(BACKENDS) - set(TRAINERS)))
def test_the_others_refuse(engine):
    with pytest.raises(PowerlabError, match=f"^the engine {engine} does not train; choose one of: builtin, torch"):
        backend_module(engine, WorkloadKind.TRAIN)


def test_a_spin_time_and_a_precision_are_refused(network):
    for more in ({"spin_us": 0}, {"precision": "int8"}):
        with pytest.raises(PowerlabError, match=r"^the engine builtin "):
            trainer("builtin", network, **more)


def test_a_step_is_three_inferences_of_work_and_an_update_on_a_simulated_board(network):
    inference = inference_work(Workload(model=network, batch_size=4))
    step = query_works(Workload(model=network, batch_size=4, kind=WorkloadKind.TRAIN, optimizer="sgd"))
    assert list(step) == ["forward", "backward", "update"]
    assert step["forward"] == inference
    assert step["backward"].flops == 2 * inference.flops > 0
    adam = query_works(Workload(model=network, batch_size=4, kind=WorkloadKind.TRAIN, optimizer="adam"))
    assert adam["update"].bytes_moved == 7 / 3 * step["update"].bytes_moved > 0
