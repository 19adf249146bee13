"""How much faster 8-bit integers are than float32, in the built-in engine and beside its peers, and what they cost.

    python -m bench.precision.vs_peers                        # six networks, three configurations each
    python -m bench.precision.vs_peers resnet50 --batch 1 --threads 1 --seconds 4
    python -m bench.precision.vs_peers --tier avx2            # everything held to AVX2, peers that cannot be left out

Each network is quantized once with seeded random inputs, and every engine runs that file; the built-in one runs the
network in float32 too. Each has a process of its own and they take turns. A ratio is another engine's time over that of
the built-in one in int8, turn by turn: above 1, ours is faster. Only the built-in engine and ONNX Runtime are sure to
compute what the file says, the latter where sums do not overflow (``overflow.py``): OpenVINO rearranges quantizations,
and LiteRT rounds before it adds a residual. PyTorch, which the extra ``peers`` does not bring along, is compared where
``--peers torch`` asks for it. Beside the ratios stands what is left of the outputs' signal in ours (SQNR) and for how
many random inputs the first choice is that of float32. ``--tier avx512`` leaves AMX out; with ``--tier avx2``, and on
processors without dot products of bytes, weights are narrow, as ``powerlab engine quantize --narrow-weights 4`` writes
them (``--full`` keeps all bits). A star means that a peer failed on the file, and got one whose concatenations and
batch norms are floats.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from bench.engine.vs_peers import CONFIGURATIONS, HELD_TIERS, hold
from bench.peers.ratios import OURS, Cell, paired_ratio
from bench.peers.turns import EngineError, EngineProcess, balanced_orders
from bench.precision.files import cost, files, with_floats_between
from powerlab.backends.packages import installed_version
from powerlab.boards.processor import cpu_model
from powerlab.engine.target.tiers import choose_tier
from powerlab.sysroot import Sysroot

MODELS = ("resnet50", "mobilenetv2", "densenet201", "yolov3", "vit-tiny", "bert")
PEERS = ("onnxruntime", "openvino", "litert")
FLOATS = "fp32"
"""The built-in engine with the network as it was."""

BETWEEN = "*"
"""Behind the name of a peer that failed on the file, and got one whose concatenations and batch norms are floats."""

LEAST_TURNS = 5
TURN_S = 0.1

Turns = Mapping[str, Sequence[float]]


def measure(model: str, batch: int, threads: int, peers: Sequence[str], seconds: float, *, narrow: bool) -> Turns:
    """Return the median seconds of an inference in each turn, by engine; those that fail are left out."""
    floats, integers = files(model, batch, narrow=narrow)
    engines: dict[str, EngineProcess] = {}
    first: dict[str, float] = {}
    try:
        for name in (OURS, FLOATS, *peers):
            of_floats = {OURS: (), FLOATS: ()}.get(name, (BETWEEN,))
            for suffix in ("", *of_floats):
                file = floats if name == FLOATS else integers
                if suffix:
                    file = with_floats_between(model, batch, narrow=narrow)
                cell = Cell(model=str(file), batch_size=batch, threads=threads)
                engine = EngineProcess(OURS if name == FLOATS else name, cell)
                try:
                    engine.outputs()
                    first[name + suffix] = min(engine.turn(1, 1))
                    engines[name + suffix] = engine
                    break
                except EngineError as error:
                    print(f"{model}: {name} {error}", file=sys.stderr)
                    engine.close()
        counts = {name: max(1, round(TURN_S / first[name])) for name in engines}
        turns: dict[str, list[float]] = {name: [] for name in engines}
        a_round = sum(max(TURN_S, 2 * first[name]) for name in engines)
        orders, names = itertools.cycle(balanced_orders(len(engines))), list(engines)
        for order in itertools.islice(orders, max(LEAST_TURNS, round(seconds / a_round))):
            for name in (names[place] for place in order):
                turns[name].append(statistics.median(engines[name].turn(max(1, counts[name] // 3), counts[name])))
    finally:
        for engine in engines.values():
            engine.close()
    return turns


def row(model: str, batch: int, threads: int, turns: Turns, names: Sequence[str], *, narrow: bool) -> list[str]:
    """Return a line of the table."""
    ours, keeps = turns[OURS], cost(model, narrow=narrow)
    ratios = [
        next(
            (
                f"{paired_ratio(ours, turns[one]).median:.2f}{one[len(name) :]}"
                for one in (name, name + BETWEEN)
                if one in turns
            ),
            "–",
        )
        for name in names
    ]
    first = "–" if keeps.agreeing is None else f"{keeps.agreeing}/{keeps.images}"
    time = f"{1000 * statistics.median(ours):.2f}"
    return [model, str(batch), str(threads), time, *ratios, f"{keeps.sqnr_db:.1f}", first]


def main() -> None:
    """Measure what the command line asks for and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--batch", type=int, help="one configuration (default: 1)")
    parser.add_argument("--threads", type=int, help="one configuration (default: 1)")
    parser.add_argument("--peers", nargs="*", default=PEERS)
    parser.add_argument("--tier", choices=HELD_TIERS, help="hold everything to an older instruction set")
    parser.add_argument("--full", action="store_true", help="weights of 8 bits on any tier")
    parser.add_argument("--seconds", type=float, default=6, help="of a cell, without loading")
    asked = parser.parse_args()
    peers = list(asked.peers) if asked.tier is None else hold(asked.tier, list(asked.peers))
    tier = choose_tier()
    narrow = not asked.full and (asked.tier == "avx2" or tier.widens_bytes)
    one = ((asked.batch or 1, asked.threads or 1),) if asked.batch or asked.threads else CONFIGURATIONS
    names, best = (FLOATS, *peers), []
    versions = ", ".join(f"{peer} {installed_version(peer)}" for peer in peers)
    weights = "narrow weights" if narrow else "weights of 8 bits"
    table = Table(title=f"{cpu_model(Sysroot())}; {tier.name}, {tier.bytes}; {weights}; {versions}")
    for column in ("model", "batch", "threads", "int8 ms", *(f"{name} / int8" for name in names), "SQNR dB", "top 1"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for model in asked.models:
        for batch, threads in one:
            turns = measure(model, batch, threads, peers, asked.seconds, narrow=narrow)
            if OURS not in turns:
                sys.exit(f"{model}: the built-in engine cannot run it")
            table.add_row(*row(model, batch, threads, turns, names, narrow=narrow))
            print(*row(model, batch, threads, turns, names, narrow=narrow), file=sys.stderr, flush=True)
            found = [
                paired_ratio(turns[OURS], taken).median
                for name, taken in turns.items()
                if name.rstrip(BETWEEN) in peers
            ]
            best += [min(found)] if found else []
    Console(width=130 if not sys.stdout.isatty() else None).print(table)
    if best:
        mean = math.exp(statistics.fmean(map(math.log, best)))
        print(f"best peer / int8: geometric mean {mean:.2f}, smallest {min(best):.2f}, {len(best)} cells")


if __name__ == "__main__":
    main()
