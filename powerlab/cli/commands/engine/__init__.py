"""``powerlab engine``: run a model once on the built-in engine, or say what is in it."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from powerlab.cli.commands.engine.cache import add_cache_parser, cache
from powerlab.cli.commands.engine.plan import add_plan_parser, plan
from powerlab.cli.commands.engine.quantize import add_quantize_parser, quantize
from powerlab.cli.commands.engine.shapes import add_shape_argument, given_shapes, shape_text
from powerlab.cli.commands.engine.tune import add_tune_parser, tune

if TYPE_CHECKING:
    from powerlab.engine.ir.graph import TensorInfo

DESCRIPTION = """\
Run, inspect, plan, tune or quantize a model on the built-in engine; list operators, engines and prepared models.
"""

EPILOG = """\
MODEL is a zoo name (such as resnet50, with random weights) or the path of an ONNX file.

examples:
  powerlab engine info resnet50          inputs, outputs, parameters, operators
  powerlab engine info model.onnx --input-shape x=1x3x224x224
                                         give the size of an input that the file leaves open
  powerlab engine run resnet50 --input in.npz --output out.npz --threads 2
                                         in.npz holds a float32 array named x of shape 1x3x224x224

  powerlab engine plan resnet50 --threads 2
                                         algorithm, tile and time of every layer
  powerlab engine tune resnet50 --threads 2
                                         find the fastest algorithms, and store them
  powerlab engine quantize resnet50 --calibrate random --output int8.onnx
                                         write a model that computes with 8-bit integers
  powerlab engine cache                  list the prepared models that are kept

To measure a model, with warm-up, repeats and power, use `powerlab profile`.
"""

_RUN_DESCRIPTION = """\
Run MODEL once. The input file is a NumPy .npz with one float32 array per input, under the input's name
(numpy.savez("in.npz", x=images)); what the model leaves open takes its size from there. The output file has one array
per output.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    run_parser = actions.add_parser("run", help="run a model once", description=_RUN_DESCRIPTION)
    info_parser = actions.add_parser(
        "info",
        help="show inputs, outputs, parameters and operators of a model",
        description="Show inputs, outputs, parameters and operators of MODEL.",
    )
    for action in (run_parser, info_parser):
        action.add_argument("model", metavar="MODEL", help="a zoo name or the path of an ONNX file")
        add_shape_argument(action)
    run_parser.add_argument("--input", metavar="FILE.npz", type=Path, required=True, help="the inputs")
    run_parser.add_argument("--output", metavar="FILE.npz", type=Path, required=True, help="the outputs")
    run_parser.add_argument("--threads", metavar="N", type=int, default=1, help="compute threads (default: 1)")
    run_parser.add_argument(
        "--slices",
        metavar="N",
        type=int,
        default=1,
        help="slices the batch is split into, run concurrently (default: 1)",
    )
    operators = actions.add_parser(
        "operators",
        help="list the ONNX operators the engine supports",
        description="List the ONNX operators the engine supports, from opset 7.",
    )
    backends = actions.add_parser(
        "backends",
        help="list the engines that `powerlab profile` can measure",
        description="List the engines that `powerlab profile --engine` can measure, and which are installed here.",
    )
    add_plan_parser(actions)
    add_tune_parser(actions)
    add_quantize_parser(actions)
    add_cache_parser(actions)
    for action in (run_parser, info_parser, operators, backends):
        action.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    actions = {
        "run": _run,
        "info": _info,
        "operators": _operators,
        "backends": _backends,
        "plan": plan,
        "tune": tune,
        "quantize": quantize,
        "cache": cache,
    }
    return actions[args.action](args)


def _run(args: argparse.Namespace) -> int:
    from powerlab.cli.commands.engine.npz import check_writable, read_npz, write_npz
    from powerlab.engine import Session
    from powerlab.engine.target import cpus

    check_writable(args.output)
    inputs = read_npz(args.input)
    session = Session(args.model, threads=args.threads, shapes=given_shapes(args.input_shape), slices=args.slices)
    if sentence := cpus.too_many(session.threads, cpus.usable_cpus()):
        print(f"powerlab: {sentence}", file=sys.stderr)
    start_ns = time.monotonic_ns()
    outputs = session.run(inputs)
    first_run_ns = time.monotonic_ns() - start_ns
    write_npz(args.output, outputs)
    if args.json:
        shapes = {name: value.shape for name, value in outputs.items()}
        document = {"model": args.model, "threads": session.threads, "slices": session.slices, "tier": session.tier}
        print(
            json.dumps({**document, "outputs": shapes, "first_run_ns": first_run_ns, "output_file": str(args.output)})
        )
    else:
        listed = ", ".join(f"{name} {shape_text(value.shape)}" for name, value in outputs.items())
        print(f"{args.output}: {listed}")
        slices = f" in {session.slices} slices" if session.slices > 1 else ""
        print(f"first run, cold: {first_run_ns / 1e6:.1f} ms with {session.threads} thread(s){slices}, {session.tier}")
    return 0


def _info(args: argparse.Namespace) -> int:
    from powerlab.engine.frontend.load import load_graph
    from powerlab.engine.ir.statistics import mac_count, operator_counts, parameter_count
    from powerlab.engine.passes import optimise
    from powerlab.engine.passes.fold.constants import fold_constants

    loaded = load_graph(args.model, given_shapes(args.input_shape))
    optimised = optimise(loaded)
    document = {
        "model": args.model,
        "inputs": _tensors(loaded.inputs),
        "outputs": _tensors(loaded.outputs),
        "parameters": parameter_count(fold_constants(loaded)),
        "macs": mac_count(optimised),
        "operators_loaded": operator_counts(loaded),
        "operators_optimised": operator_counts(optimised),
    }
    if args.json:
        print(json.dumps(document, indent=2))
    else:
        _print_info(document)
    return 0


def _tensors(infos: tuple[TensorInfo, ...]) -> list[dict[str, object]]:
    return [{"name": info.name, "shape": info.shape, "type": str(info.dtype)} for info in infos]


def _print_info(document: dict[str, object]) -> None:
    from rich.table import Table

    from powerlab.cli.output.console import OutputConsole

    loaded, optimised = document["operators_loaded"], document["operators_optimised"]
    assert isinstance(loaded, dict) and isinstance(optimised, dict)  # noqa: S101, PT018  made above
    console = OutputConsole()
    print(f"model       {document['model']}")
    for label in ("inputs", "outputs"):
        tensors = document[label]
        assert isinstance(tensors, list)  # noqa: S101  made above
        for tensor in tensors:
            print(f"{label[:-1]:<11} {tensor['name']} {shape_text(tensor['shape'])} {tensor['type']}")
    print(f"parameters  {document['parameters']:,}")
    print(f"work        {document['macs']:,} multiply-accumulates\n")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("operator")
    table.add_column("in the model", justify="right")
    table.add_column("after the passes", justify="right")
    for name in sorted({*loaded, *optimised}):
        table.add_row(name, str(loaded.get(name, "-")), str(optimised.get(name, "-")))
    table.add_row("all", str(sum(loaded.values())), str(sum(optimised.values())))
    console.print(table)


def _operators(args: argparse.Namespace) -> int:
    from powerlab.engine.ops import SUPPORTED

    print(json.dumps(sorted(SUPPORTED)) if args.json else "\n".join(sorted(SUPPORTED)))
    return 0


def _backends(args: argparse.Namespace) -> int:
    from powerlab.backends.packages import PACKAGES, installed_version
    from powerlab.cli.output.console import plain_table, print_neatly, table_console
    from powerlab.domain.preflight import ENGINES
    from powerlab.domain.training import TRAINERS

    versions = {engine: installed_version(engine) for engine in PACKAGES}
    if args.json:
        document = {
            engine: {
                "version": version,
                "processors": ENGINES[engine],
                "trains": engine in TRAINERS,
                "install": PACKAGES[engine].install,
            }
            for engine, version in versions.items()
        }
        print(json.dumps(document, indent=2))
        return 0
    table = plain_table("engine", "computes on", "trains", "installed", "how to install it")
    for engine, version in versions.items():
        install = "" if version else PACKAGES[engine].install
        table.add_row(
            engine, ", ".join(ENGINES[engine]), "yes" if engine in TRAINERS else "no", version or "no", install
        )
    print_neatly(table_console(), table)
    return 0
