"""What a network has to compute, as simulated boards are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from powerlab.boards.simulator import Work
from powerlab.domain.workload import Preparation, Workload
from powerlab.engine import Session
from powerlab.engine.frontend.load import load_graph
from powerlab.measure.worker.simulated_work import UNREADABLE_IMAGE, graph_work, inference_work, step_works


def work_of(model: str, batch_size: int = 1, **changes: object) -> Work:
    return inference_work(Workload(**{"model": model, "batch_size": batch_size, **changes}))


def test_five_fully_connected_layers_by_hand() -> None:
    """Each layer reads its weights, bias and input once and writes its output."""
    graph = load_graph("fcn5", batch_size=1)
    layers = [graph.shape(node.inputs[1]) for node in graph.nodes if node.op_type == "Gemm"]
    assert layers
    found = work_of("fcn5")
    assert found.flops == 2 * sum(rows * columns for rows, columns in layers)
    weights = sum(rows * columns + rows + columns for rows, columns in layers)
    biases = sum(graph.tensors[node.inputs[2]].elements for node in graph.nodes if node.op_type == "Gemm")
    assert found.bytes_moved == 4 * (weights + biases)
    assert found.calls == 1


def test_a_batch_has_more_to_compute_and_its_weights_but_once() -> None:
    one, four = work_of("alexnet"), work_of("alexnet", 4)
    assert four.flops == 4 * one.flops
    assert one.bytes_moved < four.bytes_moved < 2 * one.bytes_moved
    assert work_of("alexnet", 4, slices=2) == four


def test_preparing_pictures_is_work() -> None:
    outside, inside = work_of("mobilenetv2"), work_of("mobilenetv2", preparation=Preparation.INSIDE)
    assert inside.flops > outside.flops
    assert inside.bytes_moved > outside.bytes_moved
    assert inside.calls == outside.calls == 1


def test_engine_and_precision_make_no_difference() -> None:
    assert work_of("squeezenet", engine="onnxruntime", precision="int8") == work_of("squeezenet")


@pytest.mark.parametrize("content", [None, b"", b"no model"])
def test_a_model_that_the_builtin_engine_cannot_read_has_a_stand_in(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "model.onnx"
    if content is not None:
        path.write_bytes(content)
    assert work_of(str(path), 3) == Work(3 * UNREADABLE_IMAGE.flops, UNREADABLE_IMAGE.bytes_moved)


def test_the_steps_of_a_plan_share_the_work_of_the_whole() -> None:
    graph = load_graph("squeezenet", batch_size=1)
    whole = graph_work(graph)
    steps = step_works(whole, Session("squeezenet", threads=1).work)
    total = sum(steps, start=Work(0.0, 0.0, 0.0))
    assert (total.flops, total.bytes_moved, total.calls) == pytest.approx((whole.flops, whole.bytes_moved, 1.0))
    assert all(step.flops >= 0 and step.bytes_moved > 0 for step in steps)
