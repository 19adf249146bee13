"""``powerlab engine quantize``: a model with 8-bit integers, as an ONNX file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from powerlab.cli.commands.engine.shapes import add_shape_argument, given_shapes
from powerlab.domain.errors import PowerlabError

if TYPE_CHECKING:
    from powerlab.engine.ir.graph import Graph
    from powerlab.engine.quantization.calibrate import Calibration
    from powerlab.engine.quantization.observe import Arrays
    from powerlab.engine.quantization.sensitivity import Result

_DESCRIPTION = """\
Write MODEL as an ONNX file that computes with 8-bit integers (QuantizeLinear and DequantizeLinear around its layers),
and say how much of the signal each layer keeps. The ranges of its tensors come from the calibration data.
"""

_EPILOG = """\
The calibration is kept in powerlab's state directory under the hash of the model's content: sessions in int8 use it.
Random inputs say how fast a quantized model is, not how good: for that, give data.

examples:
  powerlab engine quantize resnet50 --calibrate random --output resnet50-int8.onnx
  powerlab engine quantize net.onnx --calibrate images --method entropy --sqnr 30 --output q.onnx
                                         images/ holds NumPy .npz files with one array per input
"""

_MEASURED_IMAGES = 8


def add_quantize_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action."""
    parser = actions.add_parser(
        "quantize", help="write a model that computes with 8-bit integers", description=_DESCRIPTION, epilog=_EPILOG
    )
    parser.add_argument("model", metavar="MODEL", help="a zoo name or the path of an ONNX file")
    parser.add_argument(
        "--calibrate", metavar="DIR|random", required=True, help="a folder of .npz files with inputs, or `random`"
    )
    parser.add_argument(
        "--method",
        choices=("minmax", "percentile", "entropy"),
        default="minmax",
        help="how ranges are chosen (default: minmax)",
    )
    parser.add_argument("--output", metavar="FILE.onnx", type=Path, required=True, help="the quantized model")
    parser.add_argument(
        "--sqnr",
        metavar="DB",
        type=float,
        help="keep layers in float32 until the outputs have this signal to quantisation noise ratio",
    )
    parser.add_argument(
        "--narrow-weights",
        metavar="PRODUCTS",
        nargs="?",
        type=int,
        choices=(2, 4),
        const=2,
        default=1,
        help="weights so small that two products fit 16 bits, or with 4 four of convolutions: up to one or two bits "
        "less exact, and faster on processors without dot products of bytes (AVX2)",
    )
    parser.add_argument(
        "--attention",
        action="store_true",
        help="products of two computed matrices in 8 bits, too: less exact, and faster on processors with dot products "
        "of bytes",
    )
    add_shape_argument(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def quantize(args: argparse.Namespace) -> int:
    """Quantize a model; returns the exit status."""
    from powerlab.cli.commands.engine.npz import check_writable
    from powerlab.engine.frontend.load import load_graph
    from powerlab.engine.frontend.onnx_writer import write_onnx
    from powerlab.engine.quantization.calibrate import SEED, batch_of, checked_batches, random_batches
    from powerlab.engine.quantization.kept import keep_calibration
    from powerlab.engine.quantization.layers import layers_of
    from powerlab.engine.quantization.prepare import prepared_for_quantization
    from powerlab.engine.quantization.whole import quantize_network

    check_writable(args.output)
    graph = prepared_for_quantization(load_graph(args.model, given_shapes(args.input_shape)))
    given = None if args.calibrate == "random" else _batches(Path(args.calibrate), graph)
    compared = random_batches(graph, _MEASURED_IMAGES, SEED + 1000)
    if given is not None:
        checked_batches(graph, given)
        compared = given[: -(-_MEASURED_IMAGES // batch_of(graph))]
    result, calibration = quantize_network(
        graph,
        given,
        args.method,
        compared=compared,
        least_sqnr_db=args.sqnr,
        narrow_weights=args.narrow_weights,
        attention=args.attention,
    )
    write_onnx(result.quantized.graph, args.output)
    keep_calibration(args.model, calibration)
    names = [(layer.name, layer.node.op_type) for layer in layers_of(graph, attention=args.attention)]
    if args.json:
        print(json.dumps(_document(args, calibration, result, names), indent=2))
    else:
        _print(args, calibration, result, names)
    return 0


def _batches(folder: Path, graph: Graph) -> list[Arrays]:
    """Return the inputs in the .npz files of a folder, batch by batch."""
    from powerlab.cli.commands.engine.npz import read_npz

    if not folder.is_dir():
        raise PowerlabError(f"there is no folder {str(folder)!r}; give one of .npz files, or `random`.")
    files = sorted(folder.glob("*.npz"))
    if not files:
        raise PowerlabError(
            f"{folder} holds no .npz files; give a folder with some, one array per input in each, or `random`."
        )
    return [batch for file in files for batch in _cut(read_npz(file), graph)]


def _cut(arrays: dict[str, Any], graph: Graph) -> Sequence[Arrays]:
    """Return arrays of many images as batches of the model's size; what does not fit stays whole, and is refused."""
    sizes = {info.name: info.shape[0] if info.shape else 1 for info in graph.inputs}
    counts = {
        arrays[name].shape[0] // size if arrays[name].ndim and arrays[name].shape[0] % size == 0 else 0
        for name, size in sizes.items()
        if name in arrays
    }
    if len(counts) != 1 or not next(iter(counts)):
        return [arrays]
    return [
        {name: arrays[name][index * size : (index + 1) * size] for name, size in sizes.items() if name in arrays}
        for index in range(counts.pop())
    ]


def _document(
    args: argparse.Namespace, calibration: Calibration, result: Result, names: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    return {
        "model": args.model,
        "output_file": str(args.output),
        "method": calibration.method,
        "images": calibration.images,
        "random": calibration.random,
        "equalized": calibration.equalized,
        "sqnr_db": result.outputs_db,
        "layers": [
            {
                "layer": name,
                "operator": operator,
                "precision": "int8" if name in result.layers_db else "fp32",
                "sqnr_db": result.layers_db.get(name),
            }
            for name, operator in names
        ],
    }


def _print(
    args: argparse.Namespace, calibration: Calibration, result: Result, names: Sequence[tuple[str, str]]
) -> None:
    from powerlab.cli.output.console import plain_table, print_neatly, table_console
    from powerlab.engine.target.tiers import choose_tier

    table = plain_table("layer", "operator", "precision", "SQNR dB")
    for name, operator in names:
        ratio = result.layers_db.get(name)
        table.add_row(name, operator, "fp32" if ratio is None else "int8", "" if ratio is None else f"{ratio:.1f}")
    print_neatly(table_console(), table)
    source = "random images" if calibration.random else "images"
    even = ", channels equalised" if calibration.equalized else ""
    print(f"\ncalibrated with {calibration.images} {source}, {calibration.method}{even}")
    for name, ratio in result.outputs_db.items():
        print(f"output {name}: {ratio:.1f} dB")
    kept = len(names) - len(result.layers_db)
    print(f"{args.output}: {len(result.layers_db)} layers in int8, {kept} in fp32")
    if args.narrow_weights == 1 and choose_tier().widens_bytes:
        print(
            "This processor has no dot products of bytes: here the file is hardly faster than float32 in the built-in\n"
            "engine, and sums overflow in ONNX Runtime and OpenVINO; with `--narrow-weights 4` neither is so."
        )
