"""The comparison as people and programs read it."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from bench.peers.ratios import OURS, Cell, Measured
from bench.peers.table import document, ratio_table, sentences

WIDTH = 132


def measured(
    model: str, batch_size: int = 1, absent: dict[str, str] | None = None, **turns_ms: list[float]
) -> Measured:
    return Measured(
        cell=Cell(model=model, batch_size=batch_size, threads=2),
        turns_ms=turns_ms,
        least_ms={name: min(turns) for name, turns in turns_ms.items()},
        differences=dict.fromkeys(set(turns_ms) - {OURS}, 2e-6),
        absent=absent or {},
    )


CELLS = [
    measured("resnet50", builtin=[10.0, 10.0, 12.0], openvino=[12.0, 12.0, 14.4], ncnn=[30.0, 31.0, 29.0]),
    measured("resnet50", 8, builtin=[80.0] * 3, openvino=[72.0, 80.0, 76.0], absent={"ncnn": "died (exit code -9)"}),
    measured("yolov3", builtin=[100.0] * 3, ncnn=[160.0] * 3, absent={"openvino": "refuses yolov3."}),
]
PEERS = ["openvino", "ncnn"]


def printed(cells: list[Measured], width: int = WIDTH) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(ratio_table(cells, PEERS))
    return out.getvalue()


def row(text: str, *words: str) -> str:
    (found,) = [line for line in text.splitlines() if all(word in line.split() for word in words)]
    return found


def test_a_row_has_our_latency_and_every_peers_ratio_with_its_quartiles():
    line = row(printed(CELLS), "10.00")
    assert line.split()[:4] == ["resnet50", "1", "2", "10.00"]
    assert "*1.20 (1.20–1.20)" in line
    assert "3.00 (2.71–3.05)" in line


def test_the_best_peer_alone_is_marked_in_each_row():
    lines = [
        line for line in printed(CELLS).splitlines() if "(" in line and "÷" not in line and "quartiles" not in line
    ]
    assert [line.count("*") for line in lines] == [1, 1, 1]


def test_a_peer_that_took_no_part_leaves_a_dash():
    assert "–" in row(printed(CELLS), "80.00").split()
    assert "–" in row(printed(CELLS), "100.00").split()


def test_a_model_is_named_once():
    assert printed(CELLS).count("resnet50") == 1


def test_a_cell_without_our_turns_is_a_row_of_dashes():
    text = printed([measured("odd", absent={OURS: "cannot run odd", "openvino": "neither", "ncnn": "neither"})])
    assert row(text, "odd").split() == ["odd", "1", "2", "–", "–", "–"]


def test_the_table_of_all_peers_fits_its_width():
    many = [f"peer{number}-long" for number in range(5)]
    cells = [
        measured("densenet201", builtin=[123.45] * 3, **{name: [234.5, 250.0, 260.0] for name in many}),
    ]
    out = io.StringIO()
    Console(file=out, width=WIDTH).print(ratio_table(cells, many))
    assert "…" not in out.getvalue()


def test_the_sentences_say_mean_smallest_cell_and_difference():
    text = " ".join(sentences(CELLS))
    assert "Geometric mean over 3 cells against the best peer of each: 1.222." in text
    assert "Smallest: 0.950 (0.93–0.97), resnet50 batch 8 threads 2 against openvino." in text
    assert "2.0e-06 of the largest" in text


def test_who_took_no_part_is_said_once_with_all_its_cells():
    absent = {"ncnn": "has no such operator."}
    cells = [measured(model, builtin=[1.0], openvino=[2.0], absent=absent) for model in ("one", "two")]
    lines = list(sentences(cells))
    assert lines[1:] == ["ncnn takes no part in one batch 1 threads 2, two batch 1 threads 2: has no such operator."]


def test_a_machine_that_was_not_quiet_is_said():
    noisy = replace(CELLS[0], others_cores=1.24)
    lines = list(sentences([noisy, *CELLS[1:]]))
    assert "Other programs kept up to 1.2 cores busy in 1 of 3 cells; measure again on a quiet machine." in lines
    assert not any("Other programs" in line for line in sentences(CELLS))
    assert document([noisy], {})["cells"][0]["others_cores"] == 1.24


def test_engines_that_were_loaded_one_at_a_time_are_said():
    said = " ".join(sentences([CELLS[0], replace(CELLS[2], one_at_a_time=True)]))
    assert "One engine at a time was loaded, and anew for its turns, in yolov3 batch 1 threads 2" in said
    assert "One engine" not in " ".join(sentences(CELLS))


def test_nothing_to_compare_is_a_sentence():
    assert list(sentences([])) == ["Nothing could be compared."]


def test_the_document_survives_json():
    found = json.loads(json.dumps(document(CELLS, {"measured_at": "2026-01-01T00:00:00+00:00"}), allow_nan=False))
    assert found["measured_at"] == "2026-01-01T00:00:00+00:00"
    assert found["summary"]["cells"] == 3
    assert found["summary"]["geometric_mean"] == pytest.approx((1.2 * 0.95 * 1.6) ** (1 / 3))
    assert found["summary"]["smallest"] == {
        "model": "resnet50",
        "batch_size": 8,
        "threads": 2,
        "precision": "fp32",
        "processor": "cpu",
        "optimizer": "",
    }
    first = found["cells"][0]
    assert (first["model"], first["batch_size"], first["threads"], first["rounds"]) == ("resnet50", 1, 2, 3)
    assert first["best_peer"] == "openvino"
    assert first["engines"]["openvino"]["ratio"]["median"] == pytest.approx(1.2)
    assert first["engines"]["openvino"]["latency_ms"] == {"min": 12.0, "median": 12.0}
    assert first["engines"]["openvino"]["largest_difference"] == 2e-6
    assert first["engines"][OURS]["turns_ms"] == [10.0, 10.0, 12.0]
    assert "ratio" not in first["engines"][OURS]
    assert found["cells"][1]["absent"] == {"ncnn": "died (exit code -9)"}


def test_the_document_of_nothing_is_a_document():
    assert document([], {}) == {"summary": None, "cells": []}
