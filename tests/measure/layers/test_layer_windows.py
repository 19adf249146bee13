"""Steps repeated in a worker: what it answers, which windows count, and in which order they come."""

from __future__ import annotations

import io
from itertools import groupby

import numpy as np
import pytest

from powerlab.boards.simulator import create_tree
from powerlab.domain.power import RailQuantity, TotalFormula
from powerlab.domain.run import Verdict
from powerlab.engine import Session
from powerlab.engine.training.layers import part_of
from powerlab.measure.layers.activity import activities
from powerlab.measure.layers.messages import (
    WHOLE,
    FindCeilings,
    LoadLayers,
    Repeated,
    RepeatStep,
    Roofs,
    Steps,
)
from powerlab.measure.layers.session import WHOLE_WINDOWS, shuffled
from powerlab.measure.layers.window import MOST_WINDOWS, chunks_of, is_steady, steady_window
from powerlab.measure.recording.rails import Meter
from powerlab.measure.worker.main import serve
from powerlab.measure.worker.messages import LENGTH, Broken, Refused, decode_reply, encode
from powerlab.measure.worker.process import WorkerError
from powerlab.sysroot import Sysroot
from small_network import NODES, write_small_network
from tests.measure.true_power import rail_of

WINDOW_NS = (1_000_000_000, 3_000_000_000)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    return str(write_small_network(tmp_path_factory.mktemp("network") / "small.onnx"))


def load_of(model: str) -> LoadLayers:
    return LoadLayers(model=model, batch_size=2, threads=1, sysroot="/", seed=3)


def answers(*requests) -> list:
    replies = io.BytesIO()
    serve(io.BytesIO(b"".join(encode(request) for request in requests)), replies)
    replies.seek(0)
    found = []
    while head := replies.read(LENGTH.size):
        found.append(decode_reply(replies.read(*LENGTH.unpack(head))))
    return found


def test_a_worker_says_which_steps_a_model_has(model):
    (steps,) = answers(load_of(model))
    assert isinstance(steps, Steps)
    lists = (steps.kernels, steps.labels, steps.operators, steps.nodes, steps.shapes, steps.flops, steps.bytes_moved)
    assert len({len(one) for one in lists}) == 1
    assert sorted(name for nodes in steps.nodes for name in nodes) == sorted(NODES)
    assert steps.shapes[steps.labels.index("second")] == (2, 16, 32, 32)


def test_a_step_of_training_has_a_layer_for_each_direction_and_update(model):
    load = LoadLayers(model=model, batch_size=2, threads=1, sysroot="/", seed=3, optimizer="momentum")
    (steps,) = answers(load)
    learning = ("first", "norm", "second", "classes")
    for name in learning:
        places = [steps.labels.index(f"{name}{what}") for what in ("", " backward", " update")]
        assert places == sorted(places)
        assert {steps.nodes[place] for place in places} == {(name,)}
    forward, backward = (steps.labels.index(name) for name in ("second", "second backward"))
    assert steps.flops[backward] == 2 * steps.flops[forward] > 0  # gradients of images and of weights
    assert steps.shapes[forward] == (2, 16, 32, 32)
    _, whole, one = answers(load, *(RepeatStep(step=step, duration_s=0.05, margin_s=0.0) for step in (WHOLE, backward)))
    assert np.all(chunks_of(whole).step_ns.sum(axis=0) > 0)
    assert chunks_of(one).count.min() >= 1


@pytest.mark.parametrize("name", ["lstm2", "mobilenetv3@32"])
def test_everything_behind_the_loss_counts_as_backward_pass_whatever_its_step_is_called(name):
    (steps,) = answers(LoadLayers(model=name, batch_size=2, threads=1, sysroot="/", seed=3, optimizer="sgd"))
    parts = [part_of(label) for label in steps.labels]
    assert [part for part, _ in groupby(parts)] == ["forward", "backward", "update"]
    flops = {part: sum(flops for flops, at in zip(steps.flops, parts, strict=True) if at == part) for part in parts}
    assert flops["backward"] > 1.5 * flops["forward"] > 0


def test_a_worker_repeats_a_step_in_chunks(model):
    for _ in range(5):  # a step of this network takes microseconds, unless the machine is busy just when it is timed
        steps, repeated = answers(load_of(model), RepeatStep(step=1, duration_s=0.05, margin_s=0.01))
        chunks = chunks_of(repeated)
        if chunks.count.min() > 1:
            break
    assert chunks.count.min() > 1
    assert chunks.step_ns.shape == (chunks.start_ns.size, 0)
    assert chunks.end_ns[-1] - chunks.start_ns[0] >= 0.04e9
    assert isinstance(steps, Steps)


def test_a_worker_says_what_every_step_takes_of_the_whole(model):
    steps, repeated = answers(load_of(model), RepeatStep(step=WHOLE, duration_s=0.05, margin_s=0.0))
    chunks = chunks_of(repeated)
    assert chunks.step_ns.shape == (chunks.start_ns.size, len(steps.kernels))
    each_ns = (chunks.end_ns - chunks.start_ns) / chunks.count
    assert np.all(chunks.step_ns.sum(axis=1) <= each_ns)
    assert np.all(chunks.step_ns >= 0)


def test_on_a_simulated_board_steps_share_the_whole_the_same_way_every_time(model, tmp_path):
    """The host may be busy; the board is not."""
    create_tree("jetson-orin-nano", tmp_path / "board")
    load = LoadLayers(model=model, batch_size=1, threads=2, sysroot=str(tmp_path / "board"), seed=3)
    _, repeated = answers(load, RepeatStep(step=WHOLE, duration_s=0.2, margin_s=0.0))
    chunks = chunks_of(repeated)
    assert np.all(chunks.step_ns == chunks.step_ns[0])
    assert np.all(chunks.step_ns > 0)


def test_a_window_holds_a_chunk_at_least(model):
    _, repeated = answers(load_of(model), RepeatStep(step=0, duration_s=0.0, margin_s=0.0))
    assert chunks_of(repeated).start_ns.size == 1


def test_a_worker_measures_its_ceilings(model):
    _, roofs = answers(load_of(model), FindCeilings())
    assert isinstance(roofs, Roofs)
    assert roofs.peak_gflops > 0
    assert roofs.memory_gb_per_s > 0


def test_a_model_there_is_not_is_refused_with_a_sentence():
    (refused,) = answers(load_of("resnet51"))
    assert isinstance(refused, Refused)
    assert "there is no model 'resnet51'" in refused.sentence


def test_steps_of_no_model_are_an_error():
    (broken,) = answers(RepeatStep(step=0, duration_s=0.0, margin_s=0.0))
    assert broken == Broken(detail="RuntimeError: no model is loaded")


def times(*values: int) -> bytes:
    return np.array(values, dtype="<i8").tobytes()


def reply(**changes: bytes) -> Repeated:
    fields = {"start_ns": times(0, 10), "end_ns": times(5, 15), "count": times(2, 2), "step_ns": b"", **changes}
    return Repeated(**fields)


@pytest.mark.parametrize(
    "changes",
    [
        {"start_ns": b"abc"},
        {"start_ns": times(0)},
        {"start_ns": times(10, 0)},
        {"end_ns": times(0, 15)},
        {"count": times(2, 0)},
        {"start_ns": b"", "end_ns": b"", "count": b""},
        {"step_ns": times(1, 2, 3)},
    ],
    ids=["cut off", "lengths", "order", "no time", "no repetitions", "nothing", "steps"],
)
def test_garbage_from_a_worker_is_found_out(changes):
    with pytest.raises(WorkerError, match="garbage"):
        chunks_of(reply(**changes))


def test_answers_are_read_as_they_were_written():
    chunks = chunks_of(reply(step_ns=times(1, 2, 3, 4)))
    assert chunks.step_ns.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("seed", range(20))
def test_every_step_comes_once_and_the_whole_between_them(seed):
    order = shuffled(9, seed)
    assert sorted(order) == [WHOLE] * WHOLE_WINDOWS + list(range(9))
    assert order == shuffled(9, seed)


def test_another_seed_makes_another_order():
    assert len({tuple(shuffled(9, seed)) for seed in range(10)}) == 10


def power_trace(make_trace, slope_w_per_s: float, noise_w: float = 0.0):
    rail = rail_of(RailQuantity.POWER, update_period_s=0.01)
    time_s = np.arange(0, 4, 0.01)
    noise = np.random.default_rng(4).normal(0, noise_w, time_s.size) if noise_w else 0.0
    return TotalFormula(rails=(rail.key,), scope="all"), make_trace(time_s, 10 + slope_w_per_s * time_s + noise, rail)


@pytest.mark.parametrize(
    ("slope_w_per_s", "noise_w", "steady"),
    [
        (0.0, 0.0, True),
        (0.0, 0.3, True),
        (0.05, 0.02, True),
        (0.5, 0.02, False),
        (-0.5, 0.02, False),
        (2.0, 0.3, False),
    ],
)
def test_a_drift_that_is_more_than_noise_and_matters_is_no_steady_state(make_trace, slope_w_per_s, noise_w, steady):
    total, trace = power_trace(make_trace, slope_w_per_s, noise_w)
    assert is_steady(total, [trace], WINDOW_NS) is steady


def test_where_nothing_covers_the_window_another_one_would_not_help(make_trace):
    total, trace = power_trace(make_trace, 1.0)
    assert is_steady(total, [trace], (10_000_000_000, 12_000_000_000))
    assert is_steady(total, [], WINDOW_NS)


class Settling:
    """A worker that says how often it was asked."""

    pid = 0

    def __init__(self) -> None:
        self.asked = 0

    def ask(self, request, timeout_s, expected):
        self.asked += 1
        return Repeated(start_ns=times(*WINDOW_NS[:1]), end_ns=times(*WINDOW_NS[1:]), count=times(10), step_ns=b"")


@pytest.fixture
def recorded(monkeypatch, make_trace):
    """Let every window find the next of some traces."""
    from powerlab.measure.layers import window

    def install(*traces) -> Meter:
        left = list(traces)

        class Recording:
            failure = None
            core_share = 0.0

            def __init__(self, meter) -> None: ...

            def __enter__(self):
                return self

            def __exit__(self, *_) -> None: ...

            def finish(self):
                return (left.pop(0) if len(left) > 1 else left[0],)

        monkeypatch.setattr(window, "Recording", Recording)
        monkeypatch.setattr(window, "BackgroundLoad", lambda _: type("Quiet", (), {"cores": lambda self: 0.0})())
        rail = traces[0].rail
        total = TotalFormula(rails=(rail.key,), scope="all")
        return Meter(sysroot=Sysroot(), total=total, rails=(rail,), sample_period_s=0.01)

    return install


def test_a_step_is_repeated_until_its_power_is_steady(recorded, make_trace):
    (_, rising), (_, level) = power_trace(make_trace, 1.0, 0.01), power_trace(make_trace, 0.0, 0.01)
    worker = Settling()
    found = steady_window(worker, recorded(rising, level), 0, 2.0)
    assert (found.steady, found.windows, worker.asked) == (True, 2, 2)
    assert found.energy.power_w == pytest.approx(10, abs=0.05)
    assert found.each_ns == pytest.approx([0.2e9])


def test_a_power_that_never_settles_is_used_and_said_to_drift(recorded, make_trace):
    _, rising = power_trace(make_trace, 1.0, 0.01)
    found = steady_window(Settling(), recorded(rising), 0, 2.0)
    assert (found.steady, found.windows) == (False, MOST_WINDOWS)
    assert found.energy is not None


def test_a_window_with_a_gap_is_repeated(recorded, make_trace):
    _, level = power_trace(make_trace, 0.0, 0.01)
    keep = (level.time_ns < 1_500_000_000) | (level.time_ns > 2_200_000_000)
    gap = make_trace(level.time_ns[keep] / 1e9, level.value[keep], level.rail)
    found = steady_window(Settling(), recorded(gap, level), 0, 2.0)
    assert found.windows == 2
    assert found.energy is not None
    assert not [finding for finding in found.findings if finding.verdict is Verdict.VOID]


def test_layers_switch_differently_and_the_whole_as_ever(model):
    session = Session(model, threads=1, shapes={"x": (1, 3, 32, 32)})
    step_ns = np.random.default_rng(1).uniform(1, 9, len(session.work))
    found = np.array(activities(session.work, step_ns))
    assert (found * step_ns).sum() / step_ns.sum() == pytest.approx(1)
    busiest = max(range(len(session.work)), key=lambda i: session.work[i].flops / session.work[i].bytes_moved)
    assert found.argmax() == busiest
    assert found.min() > 0
