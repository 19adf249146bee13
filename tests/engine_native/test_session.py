import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import psutil
import pytest

from engine_native.graphs import NO_CLAMP, GraphMaker, use_tier
from new_threads import new_thread_counter
from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.target.tiers import available_tiers, choose_tier

TESTS = Path(__file__).parents[1]
SHAPE = (1, 8, 20, 20)


def small_graph(seed=0, width=32):
    rng = np.random.default_rng(seed)
    maker = GraphMaker()
    y = maker.conv(maker.input("x", *SHAPE), rng.standard_normal((width, 8, 3, 3)), pads=(1, 1, 1, 1))
    y = maker.conv(y, rng.standard_normal((4, width, 1, 1)), clamp=(0.0, np.inf))
    return maker.graph(y)


def image(seed=1):
    return np.random.default_rng(seed).standard_normal(SHAPE, dtype=np.float32)


@pytest.fixture
def session():
    return Session(small_graph())


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "the input 'x' is missing; the model takes 'x' float32 [1, 8, 20, 20]."),
        ({"x": image(), "z": image()}, "the model has no input 'z'; it takes 'x' float32 [1, 8, 20, 20]."),
        (
            {"x": image()[:, :, :-1]},
            "the input 'x' has shape [1, 8, 19, 20]; the model takes 'x' float32 [1, 8, 20, 20].",
        ),
        (
            {"x": image().astype(np.float64)},
            "the input 'x' must be a float32 array, not float64; the model takes 'x' float32 [1, 8, 20, 20].",
        ),
        (
            {"x": [1.0]},
            "the input 'x' must be a float32 array, not list; the model takes 'x' float32 [1, 8, 20, 20].",
        ),
    ],
    ids=["missing", "unknown", "shape", "type", "no array"],
)
def test_bad_inputs_are_explained(session, inputs, message):
    with pytest.raises(PowerlabError) as error:
        session.run(inputs)
    assert str(error.value) == message


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True, 10**6])
def test_bad_thread_counts_are_explained(threads):
    with pytest.raises(PowerlabError, match="threads must be an integer from 1 to 1024"):
        Session(small_graph(), threads=threads)


def test_inputs_need_not_be_contiguous_nor_aligned(session):
    x = image()
    expected = session.run({"x": x})
    strided = np.asfortranarray(x)
    memory = np.zeros(x.nbytes + 4, np.uint8)
    unaligned = memory[4:].view(np.float32).reshape(SHAPE)
    unaligned[...] = x
    for other in (strided, unaligned):
        for name, value in session.run({"x": other}).items():
            np.testing.assert_array_equal(value, expected[name])


def test_inputs_are_left_alone_and_results_are_new_arrays(session):
    x = image()
    before = x.copy()
    (first,) = session.run({"x": x}).values()
    kept = first.copy()
    session.run({"x": image(9)})
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(first, kept)


def test_it_says_what_it_takes_and_gives(session):
    assert session.inputs == {"x": SHAPE}
    assert session.outputs == {"t1": (1, 4, 20, 20)}
    assert session.tier == choose_tier().name
    assert any(kernel.startswith("conv_direct_f32_") and kernel.endswith(session.tier) for kernel, _ in session.steps())


def test_profile_times_every_step(session):
    profile = session.profile({"x": image()})
    assert [(kernel, node) for kernel, node, _ in profile] == session.steps()
    assert all(duration_ns >= 0 for _, _, duration_ns in profile)


def test_an_unknown_tier_is_explained():
    with (
        use_tier("mmx"),
        pytest.raises(PowerlabError, match=r'"mmx" is not one this processor can run; use .*sse4|neon'),
    ):
        Session(small_graph())


def test_every_tier_gives_the_same_answer_within_rounding():
    answers = []
    for tier in available_tiers():
        with use_tier(tier.name):
            answers.append(Session(small_graph()).run({"x": image()})["t1"])
    for answer in answers[1:]:
        np.testing.assert_allclose(answer, answers[0], rtol=1e-4, atol=1e-5 * np.abs(answers[0]).max())


def test_threads_may_share_a_session_and_sessions_a_process():
    sessions = [Session(small_graph(seed), threads=2) for seed in range(2)]
    expected = {(s, i): sessions[s].run({"x": image(i)})["t1"] for s in range(2) for i in range(3)}
    wrong = []

    def work(s, i):
        answers = [sessions[s].run({"x": image(i)})["t1"] for _ in range(20)]
        wrong.extend((s, i) for answer in answers if not np.array_equal(answer, expected[s, i]))

    workers = [threading.Thread(target=work, args=key) for key in expected]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_it_starts_the_threads_it_was_given_and_ends_them(threads):
    new_threads = new_thread_counter()
    session = Session(small_graph(), threads=threads)
    session.run({"x": image()})
    assert new_threads(threads - 1) == threads - 1
    del session
    gc.collect()
    assert new_threads(0) == 0


def test_its_threads_keep_to_the_cores_they_were_given():
    allowed = os.sched_getaffinity(0)
    one = {min(allowed)}
    before = {thread.id for thread in psutil.Process().threads()}
    try:
        os.sched_setaffinity(0, one)
        session = Session(small_graph(), threads=2)
        started = {thread.id for thread in psutil.Process().threads()} - before
        assert len(started) == 1
        assert all(os.sched_getaffinity(thread) == one for thread in started)
        session.run({"x": image()})
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.campaign
def test_memory_stays_flat_over_many_sessions():
    graph = small_graph(width=512)
    process = psutil.Process()

    def use(count):
        for _ in range(count):
            Session(graph, threads=2).run({"x": image()})
        gc.collect()
        return process.memory_info().rss

    use(20)
    before = use(5)
    kept_per_session = (use(60) - before) / 60
    assert kept_per_session < 20_000  # one leaked arena or weight would be 200 kB and more


def _run_in_child(session, method, queue):
    try:
        getattr(session, method)({"x": image()})
    except PowerlabError as error:
        queue.put(str(error))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["run", "profile"])
def test_a_forked_child_is_told_instead_of_hanging(session, method):
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_run_in_child, args=(session, method, queue))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert queue.get() == "this Session was made before the process forked; make it in the process that runs it."


def test_ctrl_c_reaches_python_during_a_run():
    code = (
        f"import sys; sys.path[:0] = {[str(TESTS), str(TESTS / 'support')]}\n"
        "from engine_native.test_session import Session, small_graph, image\n"
        "session = Session(small_graph(), threads=2)\n"
        "try:\n"
        "    session.run({'x': image()})\n"
        "    print('running', flush=True)\n"
        "    while True:\n"
        "        session.run({'x': image()})\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "running\n"
    child.send_signal(signal.SIGINT)
    output, _ = child.communicate(timeout=60)
    assert output == "interrupted\n"
    assert child.returncode == 0


def test_an_empty_input_is_explained():
    maker = GraphMaker()
    y = maker.conv(maker.input("x", 0, 3, 8, 8), np.ones((4, 3, 1, 1)))
    with pytest.raises(
        PowerlabError, match=r"the tensor 'x' has shape \[0, 3, 8, 8\]: it is empty, so there is nothing to compute"
    ):
        Session(maker.graph(y))


def test_too_large_a_batch_is_explained():
    maker = GraphMaker()
    shape = (2**31 - 1, 64, 64, 64)
    y = maker.node("Clamp", (maker.input("x", *shape),), shape, clamp=NO_CLAMP)
    with pytest.raises(
        PowerlabError,
        match=r"the model needs \S+ GiB for its activations, and .* left to this process; use a smaller batch",
    ):
        Session(maker.graph(y))


def test_clamp_free_outputs_may_be_anything():
    maker = GraphMaker()
    x = maker.input("x", 1, 4)
    y = maker.node("Clamp", (x,), (1, 4), clamp=NO_CLAMP)
    values = np.array([[np.inf, -np.inf, np.nan, -0.0]], np.float32)
    np.testing.assert_array_equal(Session(maker.graph(y)).run({"x": values})[y], values)
