"""``powerlab engine plan``: how a model is computed, layer by layer."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from powerlab.cli.commands.engine.shapes import add_shape_argument, given_shapes, shape_text

if TYPE_CHECKING:
    from powerlab.engine.runtime.plan_listing import ListedStep

_DESCRIPTION = """\
Show how MODEL is computed on this machine, layer by layer: algorithm, kernel, register tile, blocking for threads and
caches, expected and measured time, and the roofline, which is measured first.
"""

_EPILOG = """\
GFLOP/s count the operations of a direct convolution, so Winograd's algorithms may exceed the roof. Cache sizes come
from the kernel; where they are wrong, as in many virtual machines, write l1_bytes, l2_bytes and l3_bytes into engine-
caches.toml in powerlab's state directory, or into the file named by POWERLAB_CACHES.

examples:
  powerlab engine plan resnet50 --threads 2
  powerlab engine plan yolov3 --batch 8 --expected --json > plan.json
"""


def add_plan_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action."""
    parser = actions.add_parser(
        "plan", help="show algorithm and time of every layer", description=_DESCRIPTION, epilog=_EPILOG
    )
    parser.add_argument("model", metavar="MODEL", help="a zoo name or the path of an ONNX file")
    parser.add_argument("--threads", metavar="N", type=int, default=1, help="compute threads (default: 1)")
    parser.add_argument("--batch", metavar="N", type=int, default=1, help="images per inference (default: 1)")
    add_shape_argument(parser)
    times = parser.add_mutually_exclusive_group()
    times.add_argument("--measured", action="store_true", help="run the model and show measured times (default)")
    times.add_argument("--expected", action="store_true", help="show expected times only; do not run the model")
    parser.add_argument("--untuned", action="store_true", help="ignore what `powerlab engine tune` found")
    parser.add_argument("--json", action="store_true", help="print JSON")


def plan(args: argparse.Namespace) -> int:
    """Print the plan; returns the exit status."""
    document = plan_document(args)
    if args.json:
        print(json.dumps(document, indent=2))
    else:
        _print(document)
    return 0


def plan_document(args: argparse.Namespace) -> dict[str, Any]:
    """Return the plan as ``--json`` prints it.

    Raises:
        PowerlabError: the model cannot be read or run.
    """
    from powerlab.engine import Session
    from powerlab.engine.frontend.load import load_graph
    from powerlab.engine.passes import optimise
    from powerlab.engine.runtime.plan_listing import list_steps, measure_steps
    from powerlab.engine.target.arm_cores import arm_features
    from powerlab.engine.target.ceilings import measure_ceilings
    from powerlab.engine.target.machine import this_machine
    from powerlab.engine.target.tiers import choose_tier
    from powerlab.sysroot import Sysroot

    graph = optimise(load_graph(args.model, given_shapes(args.input_shape), batch_size=args.batch))
    session = Session(graph, threads=args.threads, tuned=not args.untuned)
    machine, roofs = this_machine(choose_tier(), args.threads), measure_ceilings(args.threads)
    steps = list_steps(session, graph, machine, roofs, None if args.expected else measure_steps(session))
    return {
        "model": args.model,
        "inputs": {info.name: info.shape for info in graph.inputs},
        "threads": session.threads,
        "tier": session.tier,
        "unused_features": arm_features(Sysroot()),
        "caches": to_builtins(machine.caches),
        "roofs": to_builtins(roofs),
        "layers": [_layer(number, step) for number, step in enumerate(steps)],
        "totals": _totals(steps),
    }


def _layer(number: int, step: ListedStep) -> dict[str, Any]:
    return {
        "step": number,
        "node": step.work.label,
        "operator": step.work.operator,
        "shape": step.work.shape,
        "kernel": step.kernel,
        "choice": None if step.choice is None else to_builtins(step.choice),
        "flops": step.work.flops,
        "bytes_moved": step.work.bytes_moved,
        "expected_ns": round(step.expected_ns),
        "measured_ns": None if step.measured_ns is None else round(step.measured_ns),
        "gflops": step.gflops,
        "roof_share": step.roof_share,
    }


def _totals(steps: tuple[ListedStep, ...]) -> dict[str, Any]:
    flops, ns = sum(step.work.flops for step in steps), sum(step.ns for step in steps)
    measured = [step.measured_ns for step in steps if step.measured_ns is not None]
    return {
        "flops": flops,
        "expected_ns": round(sum(step.expected_ns for step in steps)),
        "measured_ns": round(sum(measured)) if measured else None,
        "gflops": flops / ns if ns else 0.0,
        "roof_share": sum(step.roof_ns for step in steps) / ns if ns else 0.0,
    }


def _print(document: dict[str, Any]) -> None:
    from powerlab.cli.output.console import plain_table, print_neatly, table_console

    caches, roofs, totals = document["caches"], document["roofs"], document["totals"]
    inputs = ", ".join(f"{name} {shape_text(shape)}" for name, shape in document["inputs"].items())
    print(f"{document['model']}, {inputs}, {document['threads']} thread(s), {document['tier']}")
    if document["unused_features"]:
        print(f"the processor also has {', '.join(document['unused_features'])}, of which float32 needs nothing")
    sizes = ", ".join(f"L{level} {_size(caches[f'l{level}_bytes'])}" for level in (1, 2, 3))
    print(f"caches: {sizes} ({caches['origin']})")
    print(f"roofs: {roofs['peak_gflops']:.0f} GFLOP/s, {roofs['memory_gb_per_s']:.1f} GB/s\n")
    headings = ("node", "result", "algorithm", "kernel", "cut", "expected ms", "measured ms", "GFLOP/s", "% of roof")
    table = plain_table(*headings)
    for column in table.columns[5:]:
        column.justify = "right"
    for layer in document["layers"]:
        table.add_row(
            layer["node"],
            shape_text(layer["shape"]),
            layer["choice"]["algorithm"] if layer["choice"] else "-",
            layer["kernel"],
            _cut(layer["choice"]),
            *_figures(layer),
        )
    table.add_row("all", "", "", "", "", *_figures(totals))
    print_neatly(table_console(), table)


def _figures(row: dict[str, Any]) -> tuple[str, ...]:
    measured = "-" if row["measured_ns"] is None else f"{row['measured_ns'] / 1e6:.3f}"
    rate = f"{row['gflops']:.0f}" if row["flops"] else "-"
    return f"{row['expected_ns'] / 1e6:.3f}", measured, rate, f"{100 * row['roof_share']:.0f}"


def _cut(choice: dict[str, Any] | None) -> str:
    """Return tile and blocking: ``4x6 2 4 120`` is a tile, parts of the channels, input blocks and tiles of a piece."""
    if choice is None or not choice["tile_blocks"]:
        return "-"
    tile = f"{choice['tile_blocks']}x{choice['tile_pixels']}"
    return f"{tile} {choice['channel_split']} {choice['chunk_blocks'] or '-'} {choice['chunk_tiles'] or '-'}"


def _size(size_bytes: int) -> str:
    return f"{size_bytes >> 10} KiB" if size_bytes < 1 << 20 else f"{size_bytes / (1 << 20):g} MiB"
