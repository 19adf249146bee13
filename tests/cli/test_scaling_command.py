"""``powerlab scaling`` over a stored run: every figure is called simulated, and bad input gets a sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import pytest

from powerlab.cli import main
from powerlab.cli.stored.local_database import begin
from powerlab.domain.power import Trace
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import WorkloadKind
from powerlab.measure.percentiles.latency import is_latency
from powerlab.store import open_store
from recorded_run import recorded_run
from server_examples import capabilities, device
from small_network import write_small_network


@dataclass(frozen=True)
class World:
    """A database with two runs of one network: one trained, the other inferred."""

    database: str
    trained: str
    inferred: str


def parts_of(latency: Trace) -> Iterator[Trace]:
    begin_ns = latency.time_ns
    for name, share in (("forward", 0.3), ("backward", 0.6), ("update", 0.1)):
        value = share * latency.value
        yield Trace(rail=replace(latency.rail, name=name), time_ns=begin_ns, value=value)
        begin_ns = begin_ns + np.round(value * 1e9).astype(np.int64)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("scaling")
    model = str(write_small_network(folder / "small.onnx"))
    plan = SweepPlan(models=(model,), threads=(2,), batch_sizes=(4,))
    found = []
    with closing(open_store(folder / "runs.db")) as store:
        for more in ({}, {"workload": WorkloadKind.TRAIN, "optimizers": ("sgd",)}):
            held = begin(store, device(), capabilities(), replace(plan, **more))
            (point,) = replace(plan, **more).points()
            recorded = recorded_run(sweep_id=held.sweep_id, point=point)
            latency = next(filter(is_latency, recorded.traces))
            held.add(recorded.run, (*recorded.traces, *(parts_of(latency) if more else ())))
            assert held.broken is None
            held.finish(None)
            found.append(recorded.run.id)
    return World(database=str(folder / "runs.db"), inferred=found[0], trained=found[1])


def said(capsys: pytest.CaptureFixture[str], world: World, *words: str) -> str:
    assert main(["scaling", world.trained, "--from", world.database, *words]) == 0
    return capsys.readouterr().out


def test_nodes_and_links_have_a_row_and_a_table_each(world, capsys):
    out = said(capsys, world, "--link", "1gbe,30us:1.1GB/s")
    assert out.startswith(f"Simulated from the valid run {world.trained}: ")
    assert "Nothing below was measured on several nodes" in out
    assert out.count("simulated") >= 12
    assert "1gbe: 50 us + bytes / 0.1186 GB/s" in out
    rows = [words for words in map(str.split, out.splitlines()) if len(words) > 6 and words[0].isdigit()]
    assert [row[0] for row in rows] == ["1", "2", "4", "8", "16", "32", "64"] * 2
    assert "The run itself, on one node: " in out


def test_one_node_is_the_run_and_more_nodes_give_more_images(world, capsys):
    found = json.loads(said(capsys, world, "--json", "--nodes", "1,2,64", "--reduce", "after"))
    assert found["provenance"] == "simulated"
    assert not found["overlapped"]
    one, two, many = found["links"][0]["points"]
    assert one["throughput"]["value"] == pytest.approx(4 / 0.02, rel=0.03)
    assert one["wait_ms"] == 0
    assert one["throughput"]["value"] < two["throughput"]["value"] < many["throughput"]["value"]
    assert all(point["energy_per_image"]["provenance"] == "simulated" for point in (one, two, many))
    assert many["efficiency_percent"] < two["efficiency_percent"] <= one["efficiency_percent"] + 2


def test_the_size_of_gradients_may_be_told(world, capsys):
    found = json.loads(said(capsys, world, "--json", "--gradient-mb", "100", "--nodes", "2"))
    assert found["gradient_mb"] == pytest.approx(100.0)
    assert found["buckets"] == 24


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--nodes", "0"), "invalid --nodes"),
        (("--nodes", "2,600"), "at most 512 are simulated"),
        (("--link", "token-ring"), "unknown link 'token-ring'; choose from: 1gbe"),
        (("--gradient-mb", "-1"), "invalid --gradient-mb -1"),
    ],
)
def test_bad_words_get_a_sentence(world, capsys, words, sentence):
    assert main(["scaling", world.trained, "--from", world.database, *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert "Traceback" not in error


def test_a_run_that_infers_is_refused(world, capsys):
    assert main(["scaling", world.inferred, "--from", world.database]) == 2
    assert f"run {world.inferred} infers; " in capsys.readouterr().err
