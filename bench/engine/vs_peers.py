"""How fast the built-in engine is against its peers on this machine, in this run: paired ratios, nothing absolute.

    python -m bench.engine.vs_peers                                   # all models, about 15 minutes
    python -m bench.engine.vs_peers --quick                           # one image, two threads: about 2 minutes
    python -m bench.engine.vs_peers resnet50 --threads 2 --batch 1 --peers onnxruntime

Every engine runs the same weights in a process of its own. They take turns, and never compute at the same time; each
turn of a peer is set against the built-in engine's turn of the same round, so that what slows the machine down for a
while slows both. In turn, every engine follows every other one equally often. A ratio above 1 means that the built-in
engine is faster. Peers run with the settings that are their best for one inference at a time (``powerlab/backends``).

``--tier avx2`` holds the built-in engine, and those peers that can be held, to what an older processor has: OpenVINO
through its own setting. The others always use all that the processor has, so they are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.peers.ratios import Cell, Measured
from bench.peers.table import document, ratio_table, sentences
from bench.peers.turns import Effort, measure_processes
from powerlab import __version__
from powerlab.backends.packages import installed_version
from powerlab.backends.registry import BACKENDS
from powerlab.boards.processor import cpu_model
from powerlab.engine.frontend.load import split_size
from powerlab.engine.frontend.zoo import ZOO
from powerlab.engine.target.tiers import choose_tier
from powerlab.engine.tuning.kept import has_tunings
from powerlab.sweep.facts import kernel_release, memory_bytes
from powerlab.sysroot import Sysroot

MODELS = (
    "resnet50",
    "resnet152",
    "densenet201",
    "alexnet",
    "mobilenetv2",
    "yolov3",
    "yolov3-tiny",
    "lstm2",
    "vit-tiny",
)
CONFIGURATIONS = ((1, 1), (1, 2), (8, 2))
"""Batch size and threads."""

PEERS = [engine for engine in BACKENDS if engine != "builtin"]

HELD = {"openvino": "ONEDNN_MAX_CPU_ISA"}
"""The peers that can be held to an instruction set, and the variable that does it."""

HELD_TIERS = {"sse4": "SSE41", "avx2": "AVX2_VNNI", "avx512": "AVX512_CORE_FP16"}
"""Tiers that a newer processor can stand in for, and what the variables above call them: with dot products of bytes
where a processor has them, and without AMX."""


def hold(tier: str, peers: Sequence[str]) -> list[str]:
    """Hold the processes that are started from now on to a tier; return the peers that can be."""
    held = [peer for peer in peers if peer in HELD]
    os.environ.update(POWERLAB_TIER=tier, POWERLAB_AMX="off", **{HELD[peer]: HELD_TIERS[tier] for peer in held})
    return held


EFFORT = Effort(cell_s=20.0, turn_s=0.06, least_rounds=5)
QUICK = Effort(cell_s=1.1, turn_s=0.02, least_rounds=3)

WIDTH = 132
"""Columns of the table where the output is no terminal."""


def cells(models: Sequence[str], batch: int | None, threads: int | None, *, quick: bool = False) -> list[Cell]:
    """Return every model in every configuration, or in the one that was asked for, or that is enough for a quick look.

    A cell costs some seconds whatever its rounds: every engine loads the model.
    """
    one = ((batch or 1, threads or 2),) if batch or threads or quick else CONFIGURATIONS
    return [Cell(model=model, batch_size=size, threads=count) for model in models for size, count in one]


def facts(peers: Sequence[str], effort: Effort) -> dict[str, Any]:
    """Return when, where and how it is measured."""
    root = Sysroot()
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "cpu": cpu_model(root),
            "cores": len(os.sched_getaffinity(0)),
            "memory_bytes": memory_bytes(root),
            "kernel": kernel_release(root),
            "tier": choose_tier().name,
        },
        "versions": {"builtin": __version__, **{peer: installed_version(peer) for peer in peers}},
        "tuned": has_tunings(),
        "seconds_per_cell": effort.cell_s,
    }


def _line(one: Measured, number: int, count: int) -> str:
    if one.best is None:
        return f"{number}/{count} {one.cell}: nothing to compare"
    peer, ratio = one.best
    return (
        f"{number}/{count} {one.cell}: {ratio.median:.2f} ({ratio.low:.2f}–{ratio.high:.2f}) against {peer}, "
        f"{one.rounds} rounds"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL", help=f"default: {' '.join(MODELS)}")
    parser.add_argument("--batch", type=int, metavar="N", help="one configuration: images per inference (default: 1)")
    parser.add_argument("--threads", type=int, metavar="N", help="one configuration: threads (default: 2)")
    parser.add_argument("--peers", nargs="+", choices=PEERS, help="default: all that are installed")
    parser.add_argument("--tier", choices=HELD_TIERS, help="hold everything to an older instruction set")
    parser.add_argument("--quick", action="store_true", help="one configuration and few rounds: about 2 minutes")
    parser.add_argument("--seconds", type=float, metavar="S", help="seconds a cell, without loading")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was seen to FILE")
    return parser.parse_args()


def main() -> None:
    """Read the command line, compare, print the table."""
    options = _options()
    peers = options.peers or [engine for engine in PEERS if installed_version(engine) is not None]
    if options.tier is not None:
        peers = hold(options.tier, peers)
    if not peers:
        held = f" that can be held to {options.tier}" if options.tier else ""
        sys.exit(f"no peer{held} is installed: pip install 'powerlab[peers]'")
    if unknown := [model for model in options.models if split_size(model)[0] not in ZOO and not Path(model).is_file()]:
        sys.exit(f"{unknown[0]!r} is neither a model of the zoo ({', '.join(sorted(ZOO))}) nor a file.")
    effort = QUICK if options.quick else EFFORT
    if options.seconds is not None:
        effort = Effort(cell_s=options.seconds, turn_s=effort.turn_s, least_rounds=effort.least_rounds)
    about, wanted = facts(peers, effort), cells(options.models, options.batch, options.threads, quick=options.quick)
    measured = []
    for number, cell in enumerate(wanted, 1):
        measured.append(measure_processes(cell, peers, effort))
        print(_line(measured[-1], number, len(wanted)), file=sys.stderr, flush=True)
        if options.json is not None:  # after every cell, so that what was seen is kept whatever comes
            options.json.parent.mkdir(parents=True, exist_ok=True)
            options.json.write_text(json.dumps(document(measured, about), indent=1) + "\n", encoding="utf-8")
    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
    console.print(ratio_table(measured, peers))
    for sentence in sentences(measured):
        console.print(sentence)
    machine = about["machine"]
    versions = ", ".join(f"{engine} {version}" for engine, version in about["versions"].items())
    tuned = "after `powerlab engine tune`" if about["tuned"] else "untuned"
    console.print(f"{machine['cpu']}, {machine['cores']} cores, {machine['tier']}, {tuned}; {versions}.")
    if options.json is not None:
        console.print(f"Everything that was seen is in {options.json}.")


if __name__ == "__main__":
    main()
