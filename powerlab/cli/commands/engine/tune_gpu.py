"""``powerlab engine tune --processor gpu``: find out which kernels and tiles are the fastest on the GPU here."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from powerlab.cli.commands.engine.shapes import given_shapes

if TYPE_CHECKING:
    from powerlab.engine.gpu.choice.method import Method
    from powerlab.engine.gpu.target import Target
    from powerlab.engine.gpu.tuning.tuner import ShapeTuned


def tune_on_gpu(args: argparse.Namespace) -> int:
    """Tune a model's convolutions on the GPU, keep each as soon as it is found, and print them; returns the status.

    Raises:
        PowerlabError: there is no GPU, it cannot compute the model, or the file cannot be kept.
    """
    from powerlab.cli.output.progress import measuring
    from powerlab.engine.frontend.load import load_graph
    from powerlab.engine.gpu.device import this_target
    from powerlab.engine.gpu.tuning.kept import keep_tunings, read_tunings, this_place, tuning_file
    from powerlab.engine.gpu.tuning.tuner import tune_model, tuned_layers
    from powerlab.engine.passes import optimise
    from powerlab.engine.quantization.precisions import in_precision

    place, target = this_place(), this_target()
    known = read_tunings(place)
    half, precision = args.precision == "fp16", "int8" if args.precision == "int8" else "fp32"
    loaded = load_graph(args.model, given_shapes(args.input_shape), batch_size=args.batch)
    graph = optimise(in_precision(loaded, args.model, precision), for_cores=False)
    found: list[ShapeTuned] = []
    with measuring() as progress:
        task = progress.add_task("tuning", total=len(tuned_layers(graph, target, half=half)))
        for one in tune_model(graph, target, known, half=half):
            keep_tunings(one.tunings)
            found.append(one)
            progress.update(task, description=_words(one), completed=len(found))
    document = {
        "model": args.model,
        "batch": args.batch,
        "input_shapes": given_shapes(args.input_shape),
        "precision": args.precision,
        "gpu": place.gpu,
        "driver": place.driver,
        "file": str(tuning_file()),
        "shapes": [_shape(one) for one in found],
        "rule_ns": round(sum(one.layers * one.expected_ns for one in found)),
        "tuned_ns": round(sum(one.layers * one.expected_ns * one.gain for one in found)),
    }
    if args.json:
        print(json.dumps(document, indent=2))
    else:
        _print(document, found, target)
    return 0


def _words(one: ShapeTuned) -> str:
    shape = one.tuned.shape
    kernel, size = "x".join(map(str, shape.kernel)), "x".join(map(str, shape.size))
    return f"{shape.inputs}->{shape.outputs} {kernel} at {size}"


def _method(method: Method, target: Target) -> str:
    """Return a method in a few characters: its kernel, and the pixels and output channels of a work group."""
    wide, high = method.tile_pixels(target.subgroup_lanes), 4 * method.tile_blocks
    return f"{f'winograd{method.winograd} ' if method.winograd else ''}{method.kernel} {wide}x{high}"


def _shape(one: ShapeTuned) -> dict[str, Any]:
    return {
        "shape": to_builtins(one.tuned.shape),
        "numbers": one.tuned.numbers,
        "words": _words(one),
        "layers": one.layers,
        "method": to_builtins(one.tuned.method),
        "rule_method": to_builtins(one.expected),
        "rule_ns": round(one.expected_ns),
        "time_ratio": one.gain,
    }


def _print(document: dict[str, Any], found: list[ShapeTuned], target: Target) -> None:
    from powerlab.cli.output.console import plain_table, print_neatly, table_console

    table = plain_table("convolution", "layers", "by the rule", "ms", "tuned", "time")
    for one in found:
        better = one.tuned.method != one.expected
        table.add_row(
            _words(one),
            str(one.layers),
            _method(one.expected, target),
            f"{one.expected_ns / 1e6:.3f}",
            _method(one.tuned.method, target) if better else "-",
            f"{100 * (one.gain - 1):+.1f} %" if better else "-",
        )
    print_neatly(table_console(), table)
    before, after = document["rule_ns"], document["tuned_ns"]
    gain = 100 * (1 - after / before) if before else 0.0
    print(f"\non {document['gpu']}: {before / 1e6:.2f} ms by the rule, {after / 1e6:.2f} ms tuned ({gain:.1f} % less)")
    print(f"kept in {document['file']}")
