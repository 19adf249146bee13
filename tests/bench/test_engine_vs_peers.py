"""Which cells are measured, and what the command line says of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.engine.vs_peers import CONFIGURATIONS, EFFORT, MODELS, PEERS, QUICK, _line, cells, facts
from bench.peers.ratios import Cell, Measured
from powerlab.engine.frontend.zoo import ZOO

ROOT = Path(__file__).parents[2]


def test_every_model_is_measured_in_every_configuration():
    found = cells(MODELS, None, None)
    assert len(found) == len(set(map(str, found))) == len(MODELS) * len(CONFIGURATIONS)
    assert {cell.model for cell in found} <= set(ZOO)
    assert {(cell.batch_size, cell.threads) for cell in found} == {(1, 1), (1, 2), (8, 2)}


@pytest.mark.parametrize(
    ("batch", "threads", "expected"), [(8, None, (8, 2)), (None, 1, (1, 1)), (1, 2, (1, 2)), (4, 3, (4, 3))]
)
def test_one_configuration_can_be_asked_for(batch, threads, expected):
    assert [(cell.batch_size, cell.threads) for cell in cells(["resnet50"], batch, threads)] == [expected]


def test_the_quick_form_takes_less_of_everything():
    assert [(cell.model, cell.batch_size, cell.threads) for cell in cells(MODELS, None, None, quick=True)] == [
        (model, 1, 2) for model in MODELS
    ]
    assert QUICK.cell_s < EFFORT.cell_s
    assert QUICK.turn_s < EFFORT.turn_s
    assert 2 <= QUICK.least_rounds < EFFORT.least_rounds


def test_the_built_in_engine_is_no_peer_of_itself():
    assert "builtin" not in PEERS
    assert {"onnxruntime", "openvino", "litert", "ncnn", "torch"} <= set(PEERS)


def test_the_facts_say_where_and_with_what_it_was_measured():
    found = facts(["onnxruntime"], QUICK)
    assert set(found["versions"]) == {"builtin", "onnxruntime"}
    assert found["machine"]["cores"] >= 1
    assert found["machine"]["tier"]
    assert found["seconds_per_cell"] == QUICK.cell_s
    assert found["tuned"] in {True, False}


def test_progress_names_cell_ratio_and_peer():
    one = Measured(
        cell=Cell(model="net", batch_size=8, threads=2),
        turns_ms={"builtin": [1.0, 1.0], "ncnn": [1.5, 1.5]},
        least_ms={"builtin": 1.0, "ncnn": 1.5},
    )
    assert _line(one, 2, 3) == "2/3 net batch 8 threads 2: 1.50 (1.50–1.50) against ncnn, 2 rounds"
    nothing = Measured(cell=one.cell, turns_ms={}, least_ms={})
    assert _line(nothing, 3, 3) == "3/3 net batch 8 threads 2: nothing to compare"


def test_make_runs_it_in_full_and_quickly():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "-m bench.engine.vs_peers $(if $(QUICK),--quick) --json build/" in makefile
