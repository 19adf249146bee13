"""How long recurrent layers take that an exporter wrote as a Loop, beside ONNX Runtime.

    python -m bench.engine.loops

Keras' layers become Loops whose body is one step of time: products, a split, functions of one number. Weights are
states that no round changes. Up to some number of nodes all rounds stand side by side, more are run one after the
other. Both engines are loaded, run once, and then run in turns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from powerlab.boards.processor import cpu_model
from powerlab.engine import Session
from powerlab.engine.target.tiers import choose_tier
from powerlab.sysroot import Sysroot

CASES = ((10, 64), (40, 64), (200, 64), (800, 64), (800, 256))
"""Steps of time, and width."""

WARM_UP = 3
ROUNDS = 15


def lstm(steps: int, width: int) -> bytes:
    """Return a model of one layer: x (steps, 1, width) becomes all states (steps, 1, width)."""
    generator = np.random.default_rng(0)
    scale = np.float32(1 / np.sqrt(width))
    weights = {name: generator.standard_normal((width, 4 * width), dtype=np.float32) * scale for name in ("w", "u")}
    constants = {
        **weights,
        "b": np.zeros(4 * width, np.float32),
        "steps": np.int64(steps),
        "state": np.zeros((1, width), np.float32),
    }
    nodes = [
        helper.make_node("Gather", ["x", "number"], ["row"], axis=0),
        helper.make_node("MatMul", ["h", "u_state"], ["recurrent"]),
        helper.make_node("Gemm", ["row", "w_state", "recurrent"], ["sum"]),
        helper.make_node("Add", ["sum", "b"], ["gates"]),
        helper.make_node("Split", ["gates"], ["i", "f", "g", "o"], axis=1),
        *(helper.make_node("Sigmoid", [name], [f"{name}_gate"]) for name in "ifo"),
        helper.make_node("Tanh", ["g"], ["g_gate"]),
        helper.make_node("Mul", ["f_gate", "c"], ["kept"]),
        helper.make_node("Mul", ["i_gate", "g_gate"], ["added"]),
        helper.make_node("Add", ["kept", "added"], ["c_next"]),
        helper.make_node("Tanh", ["c_next"], ["seen"]),
        helper.make_node("Mul", ["o_gate", "seen"], ["h_next"]),
        helper.make_node("Identity", ["h_next"], ["made"]),
        helper.make_node("Identity", ["before"], ["goes_on"]),
    ]
    states = [(name, TensorProto.FLOAT, None) for name in ("h", "c", "u_state", "w_state")]
    read = [("number", TensorProto.INT64, []), ("before", TensorProto.BOOL, []), *states]
    results = [(name, TensorProto.FLOAT, None) for name in ("h_next", "c_next", "u_state", "w_state", "made")]
    made = [("goes_on", TensorProto.BOOL, []), *results]
    body = helper.make_graph(
        nodes,
        "step",
        [helper.make_tensor_value_info(*one) for one in read],
        [helper.make_tensor_value_info(*one) for one in made],
    )
    loop = helper.make_node(
        "Loop", ["steps", "", "state", "state", "u", "w"], ["h_last", "c_last", "u_last", "w_last", "y"], body=body
    )
    graph = helper.make_graph(
        [loop],
        "lstm",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, 1, width])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [steps, 1, width])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def measure(path: Path, x: np.ndarray, threads: int) -> tuple[list[float], list[list[float]]]:
    """Return how many seconds ours and ONNX Runtime took to be ready for the second run, and for each run then."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    begin_s = time.perf_counter()
    own = Session(path, threads=threads)
    own.run({"x": x})
    middle_s = time.perf_counter()
    peer = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    (expected,) = peer.run(["y"], {"x": x})
    ready_s = [middle_s - begin_s, time.perf_counter() - middle_s]
    np.testing.assert_allclose(own.run({"x": x})["y"], expected, rtol=1e-3, atol=1e-5)
    runs: tuple[Callable[[], object], ...] = (lambda: own.run({"x": x}), lambda: peer.run(None, {"x": x}))
    taken: list[list[float]] = [[], []]
    for number in range(WARM_UP + ROUNDS):
        for run, times in zip(runs, taken, strict=True):
            run()
            begin_s = time.perf_counter()
            for _ in range(WARM_UP):
                run()
            if number >= WARM_UP:
                times.append((time.perf_counter() - begin_s) / WARM_UP)
    return ready_s, taken


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line per case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args(arguments)
    print(f"{cpu_model(Sysroot())}, tier {choose_tier().name}, {args.threads} thread(s)\n")
    print("| steps | width | ready ms | ONNX Runtime ms | a run, ms | ONNX Runtime ms | ONNX Runtime ÷ ours |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for steps, width in CASES:
            path = Path(folder) / "lstm.onnx"
            path.write_bytes(lstm(steps, width))
            x = np.random.default_rng(1).standard_normal((steps, 1, width), dtype=np.float32)
            ready_s, (own_s, peer_s) = measure(path, x, args.threads)
            ratios = sorted(peer / own for own, peer in zip(own_s, peer_s, strict=True))
            cells = [f"{1e3 * one:.1f}" for one in ready_s]
            cells += [f"{1e3 * statistics.median(times):.2f}" for times in (own_s, peer_s)]
            spread = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})"
            print(f"| {steps} | {width} | {' | '.join(cells)} | {spread} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
