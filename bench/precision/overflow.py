"""Whether engines add products of bytes exactly, or in 16 bits, which two of the largest exceed, and what that costs.

    python -m bench.precision.overflow
    python -m bench.precision.overflow densenet201 --peers onnxruntime litert

The first column is a sum over the exact one, 1 being right: of a convolution of 3 x 3 over 64 channels all of whose
inputs are 255 and all of whose weights are 127. Processors without dot products of bytes have an instruction that adds
two products and keeps 16 bits of them (vpmaddubsw): it is fast, and right where weights are small. The others are what
is left of the outputs' signal (SQNR in dB) where each engine runs the file of 8-bit integers that ``vs_peers`` runs.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from rich.console import Console
from rich.table import Table

from bench.peers.ratios import OURS
from bench.precision.files import files, random_of
from powerlab.backends.base import Backend, LoadOptions
from powerlab.backends.packages import installed_version
from powerlab.backends.registry import backend_module, load
from powerlab.boards.processor import cpu_model
from powerlab.domain.workload import WorkloadKind
from powerlab.engine.target.tiers import choose_tier
from powerlab.measure.output_accuracy import outputs_sqnr_db
from powerlab.sysroot import Sysroot

MODELS = ("resnet50", "mobilenetv2")
PEERS = ("onnxruntime", "openvino", "litert")
CHANNELS, PIXELS, TAPS = 64, 14, 9
LARGEST_INPUT, LARGEST_WEIGHT = 255, 127
EXACT = LARGEST_INPUT * LARGEST_WEIGHT * CHANNELS * TAPS
IMAGES = 4


def write_convolution(path: Path) -> None:
    """Write the convolution as an ONNX file with quantized inputs, weights and outputs."""
    weights = np.full((CHANNELS, CHANNELS, 3, 3), LARGEST_WEIGHT, np.int8)
    constants = {"step": np.float32(1), "zero": np.uint8(0), "weights": weights, "weight_zero": np.int8(0)}
    constants["sum_step"] = np.float32(EXACT / 250)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "step", "zero"], ["bytes"]),
        helper.make_node("DequantizeLinear", ["bytes", "step", "zero"], ["pixels"]),
        helper.make_node("DequantizeLinear", ["weights", "step", "weight_zero"], ["taps"]),
        helper.make_node("Conv", ["pixels", "taps"], ["sums"], pads=[1, 1, 1, 1]),
        helper.make_node("QuantizeLinear", ["sums", "sum_step", "zero"], ["answers"]),
        helper.make_node("DequantizeLinear", ["answers", "sum_step", "zero"], ["y"]),
    ]
    shape = [1, CHANNELS, PIXELS, PIXELS]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in "xy"]
    made = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "sums", ends[:1], ends[1:], made)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def loaded(engine: str, path: Path) -> Backend:
    """Return a file, loaded into an engine."""
    return load(backend_module(engine, WorkloadKind.INFERENCE), LoadOptions(model=str(path), batch_size=1, threads=1))


def share_of_sum(engine: str, path: Path) -> float:
    """Return an engine's sum over the exact one, in the middle of the image."""
    image = np.full((1, CHANNELS, PIXELS, PIXELS), LARGEST_INPUT, np.float32)
    (found,) = loaded(engine, path).run({"x": image}).values()
    return float(found[0, 0, PIXELS // 2, PIXELS // 2]) / EXACT


def signals_db(model: str, engines: Sequence[str]) -> list[float]:
    """Return what each engine keeps of a network's first output, in dB."""
    floats, integers = files(model, 1, narrow=False)
    images = random_of(model)[:IMAGES]
    exact = loaded(OURS, floats)
    right = np.stack([next(iter(exact.run(image).values())) for image in images])
    kept = []
    for engine in engines:
        backend = loaded(engine, integers)
        found = np.stack([next(iter(backend.run(image).values())) for image in images]).reshape(right.shape)
        kept.append(outputs_sqnr_db(right, found))
    return kept


def main() -> None:
    """Try what the command line asks for and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--peers", nargs="*", default=PEERS)
    asked = parser.parse_args()
    tier, engines = choose_tier(), (OURS, *asked.peers)
    columns = [signals_db(model, engines) for model in asked.models]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sums.onnx"
        write_convolution(path)
        shares = [share_of_sum(engine, path) for engine in engines]
    table = Table(title=f"{cpu_model(Sysroot())}; {tier.name}, {tier.bytes}")
    for column in ("engine", "sum", *(f"{model} dB" for model in asked.models)):
        table.add_column(column, justify="left" if column == "engine" else "right")
    for engine, share, *kept in zip(engines, shares, *columns, strict=True):
        name = engine if engine == OURS else f"{engine} {installed_version(engine)}"
        table.add_row(name, f"{share:.2f}", *(f"{one:.1f}" for one in kept))
    Console().print(table)


if __name__ == "__main__":
    main()
