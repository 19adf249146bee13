"""``powerlab engine tune``: find out which algorithms and cuts are the fastest here, and keep them."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from powerlab.cli.commands.engine.shapes import add_shape_argument, given_shapes
from powerlab.cli.commands.engine.tune_gpu import tune_on_gpu
from powerlab.domain.errors import PowerlabError
from powerlab.engine.devices import CPU, DEVICES, GPU, GPU_PRECISIONS, check_gpu_choices

if TYPE_CHECKING:
    from powerlab.engine.tuning.models import ShapeTuned

_DESCRIPTION = """\
Time the most promising algorithms for every convolution of MODEL, with cold weights, and store those that are faster
beyond noise. The engine uses a stored result when processor, clock limits, kernels, shape and thread count are the
same; otherwise its cost model decides. On a GPU kernels and tiles are chosen so, for the same GPU, driver, kernels and
precision; otherwise a rule decides.
"""

_EPILOG = """\
The first tuning of a shape fixes its algorithm; later tunings with other thread counts only choose the blocking, so
that outputs are bit-identical for any number of threads. Results are stored in engine-tuning.json, of GPUs in
gpu-tuning.json, in powerlab's state directory (POWERLAB_STATE_DIR); remove the file to forget them.

examples:
  powerlab engine tune resnet50 --threads 2
  powerlab engine tune model.onnx --batch 8 --json
  powerlab engine tune resnet50 --processor gpu --precision fp16
"""


def add_tune_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action."""
    parser = actions.add_parser(
        "tune", help="find the fastest algorithms for a model on this machine", description=_DESCRIPTION, epilog=_EPILOG
    )
    parser.add_argument("model", metavar="MODEL", help="a zoo name or the path of an ONNX file")
    parser.add_argument("--processor", choices=DEVICES, default=CPU, help="what computes (default: cpu)")
    parser.add_argument(
        "--precision", choices=GPU_PRECISIONS, default="fp32", help="what a gpu computes in (default: fp32)"
    )
    parser.add_argument("--threads", metavar="N", type=int, help="compute threads of the cpu (default: 1)")
    parser.add_argument("--batch", metavar="N", type=int, default=1, help="images per inference (default: 1)")
    add_shape_argument(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def tune(args: argparse.Namespace) -> int:
    """Tune a model and print what was found; returns the exit status.

    Raises:
        PowerlabError: the model cannot be tuned as asked.
    """
    if args.processor == GPU:
        check_gpu_choices(args.threads, args.precision)
        return tune_on_gpu(args)
    if args.precision != "fp32":
        raise PowerlabError(
            "the cpu's kernels are tuned in fp32 alone; leave out --precision, or give --processor gpu."
        )
    args.threads = 1 if args.threads is None else args.threads
    from powerlab.engine.tuning.kept import tuning_file
    from powerlab.engine.tuning.timer import measured_ns

    found = tuned_shapes(args, measured_ns)
    document = {
        "model": args.model,
        "batch": args.batch,
        "input_shapes": given_shapes(args.input_shape),
        "threads": args.threads,
        "file": str(tuning_file()),
        "shapes": [_shape(one) for one in found],
        **_totals(found),
    }
    if args.json:
        print(json.dumps(document, indent=2))
    else:
        _print(document)
    return 0


def tuned_shapes(args: argparse.Namespace, timer: Any) -> list[ShapeTuned]:
    """Tune the shapes of a model one by one, and keep each as soon as it is found.

    Raises:
        PowerlabError: the model cannot be read, the number of threads makes no sense, or the file cannot be kept.
    """
    from powerlab.cli.output.progress import measuring
    from powerlab.engine.frontend.load import load_graph
    from powerlab.engine.passes import optimise
    from powerlab.engine.session import check_threads
    from powerlab.engine.target.machine import this_machine
    from powerlab.engine.target.tiers import choose_tier
    from powerlab.engine.tuning.kept import keep_tunings, read_tunings, this_place
    from powerlab.engine.tuning.models import model_shapes, tune_model

    check_threads(args.threads)
    graph = optimise(load_graph(args.model, given_shapes(args.input_shape), batch_size=args.batch))
    tier = choose_tier()
    known = read_tunings(this_place(tier))
    found: list[ShapeTuned] = []
    with measuring() as progress:
        task = progress.add_task("tuning", total=len(model_shapes(graph)))
        for one in tune_model(graph, this_machine(tier, args.threads), known, timer):
            keep_tunings(one.tunings)
            found.append(one)
            progress.update(task, description=_words(one), completed=len(found))
    return found


def _words(one: ShapeTuned) -> str:
    shape = one.shape
    kernel, size = "x".join(map(str, shape.kernel)), "x".join(map(str, shape.size))
    return f"{shape.inputs}->{shape.outputs} {kernel} at {size}"


def _shape(one: ShapeTuned) -> dict[str, Any]:
    from msgspec import to_builtins

    verdict = one.verdict
    return {
        "shape": to_builtins(one.shape),
        "words": _words(one),
        "layers": one.layers,
        "choice": to_builtins(verdict.choice),
        "model_choice": to_builtins(verdict.expected),
        "model_ns": round(verdict.expected_ns),
        "time_ratio": verdict.gain,
    }


def _totals(found: list[ShapeTuned]) -> dict[str, Any]:
    before = sum(one.layers * one.verdict.expected_ns for one in found)
    after = sum(one.layers * one.verdict.expected_ns * one.verdict.gain for one in found)
    return {"model_ns": round(before), "tuned_ns": round(after)}


def _print(document: dict[str, Any]) -> None:
    from powerlab.cli.output.console import plain_table, print_neatly, table_console

    table = plain_table("convolution", "layers", "by the model", "ms", "tuned", "time")
    for one in document["shapes"]:
        better = one["choice"] != one["model_choice"]
        table.add_row(
            one["words"],
            str(one["layers"]),
            one["model_choice"]["algorithm"],
            f"{one['model_ns'] / 1e6:.3f}",
            one["choice"]["algorithm"] if better else "-",
            f"{100 * (one['time_ratio'] - 1):+.1f} %" if better else "-",
        )
    print_neatly(table_console(), table)
    before, after = document["model_ns"], document["tuned_ns"]
    gain = 100 * (1 - after / before) if before else 0.0
    print(f"\nall convolutions: {before / 1e6:.2f} ms by the model, {after / 1e6:.2f} ms tuned ({gain:.1f} % less)")
    print(f"kept in {document['file']}")
