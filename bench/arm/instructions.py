"""Instructions per image on 64-bit Arm: the built-in engine and its peers, counted under emulation.

``python -m bench.arm.instructions`` fetches a Python for arm64 and the peers' wheels, builds powerlab's own, and lets
each run the same models on an emulated core. What is counted are instructions of one inference with one thread, not
time: an emulator says nothing about time. How many instructions a processor does in a cycle, and how long it waits for
memory, is not in it. With ``--int8`` every engine runs the file in 8-bit integers that ``bench.precision`` writes.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bench.arm.machine import CORES, ROOT, ArmMachine, ArmMachineError, run
from bench.precision.files import files
from powerlab.measure.output_check import COARSEST, TOLERANCES, largest_difference

OURS = "builtin"
PEERS = {
    "onnxruntime": ("onnx", "onnxruntime"),
    "ncnn": ("ncnn",),
    "litert": ("ai-edge-litert",),
}
MODELS = ("mobilenetv2", "resnet50", "alexnet", "densenet201", "yolov3-tiny")
CORE = "neoverse-n1"
HERE = Path(__file__).resolve().parent


def build_counter(folder: Path) -> Path:
    """Compile the plugin for this machine's qemu-aarch64 and return where it lies."""
    found = re.search(r"version (\d+)", run(["qemu-aarch64", "--version"]))
    interface = 1 if found and int(found[1]) < 9 else 2
    out = folder / "instruction_counter.so"
    options = ("-std=c++20", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", f"-DQEMU_PLUGIN_INTERFACE={interface}")
    run(["c++", *options, HERE / "instruction_counter.cpp", "-o", out])
    return out


def make_machine(folder: Path, peers: Mapping[str, tuple[str, ...]] = PEERS) -> ArmMachine:
    """Return a machine with powerlab's wheel, built anew, and the peers'."""
    machine = ArmMachine(folder)
    machine.fetch()
    machine.install(machine.build_wheel(), *(package for packages in peers.values() for package in packages))
    return machine


def count(machine: ArmMachine, counter: Path, engine: str, model: str, core: str) -> tuple[int, dict[str, np.ndarray]]:
    """Return the instructions of one inference, and its outputs.

    Raises:
        ArmMachineError: the engine cannot run the model, or not on this machine.
    """
    counts, outputs = machine.folder / "counts", machine.folder / "outputs.npz"
    counts.unlink(missing_ok=True)
    plugin = ("-plugin", f"{counter},out={counts}")
    machine.python(HERE / "inference.py", engine, model, outputs, core=core, options=plugin)
    with np.load(outputs) as found:
        return int(counts.read_text()), dict(found)


def table(counts: Mapping[str, Mapping[str, int]], engines: list[str]) -> str:
    """Return millions of instructions per image, and peers as multiples of the built-in engine, in Markdown."""
    lines = [f"| model | powerlab | {' | '.join(engines[1:])} |", "|---" + "|--:" * len(engines) + "|"]
    for model, of in counts.items():
        cells = [f"{of[OURS] / 1e6:.1f}" if OURS in of else "–"]
        for engine in engines[1:]:
            if engine not in of:
                cells.append("–")
                continue
            ratio = f" ({of[engine] / of[OURS]:.2f})" if OURS in of else ""
            cells.append(f"{of[engine] / 1e6:.1f}{ratio}")
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Count, print the table, and return 0 where every engine's outputs agree with ours."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("models", nargs="*", default=MODELS, help=f"zoo models (default: {' '.join(MODELS)})")
    parser.add_argument("--core", choices=sorted(CORES), default=CORE, help=f"QEMU's name of a core (default: {CORE})")
    parser.add_argument("--engines", nargs="+", choices=PEERS, default=list(PEERS), help="peers (default: all)")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "arm", help="where the machine is kept")
    parser.add_argument("--int8", action="store_true", help="the same networks quantized with seeded random inputs")
    parser.add_argument("--json", type=Path, help="write the counts into this file too")
    args = parser.parse_args()
    engines = [OURS, *args.engines]
    counts: dict[str, dict[str, int]] = {}
    wrong = False
    try:
        args.folder.mkdir(parents=True, exist_ok=True)
        counter = build_counter(args.folder)
        machine = make_machine(args.folder, {name: PEERS[name] for name in args.engines})
    except ArmMachineError as error:
        sys.exit(str(error))
    for model in args.models:
        outputs: dict[str, dict[str, np.ndarray]] = {}
        for engine in engines:
            try:
                file = str(files(model, 1, narrow=False)[1].resolve()) if args.int8 else model
                number, outputs[engine] = count(machine, counter, engine, file, args.core)
            except ArmMachineError as error:
                print(f"{model}: {engine} takes no part: {str(error).strip().splitlines()[-1][:200]}", flush=True)
                continue
            counts.setdefault(model, {})[engine] = number
            difference = largest_difference(outputs[engine], outputs[OURS]) if OURS in outputs else float("nan")
            wrong |= difference > (COARSEST if args.int8 else TOLERANCES["fp32"])
            print(f"{model}: {engine} {number / 1e6:.1f} million, differs by {difference:.1g}", flush=True)
    what = " in 8-bit integers" if args.int8 else ""
    print(f"\nMillions of instructions per image{what} on {args.core}, one thread; in brackets the peer's ÷ ours\n")
    print(table(counts, engines))
    if args.json:
        args.json.write_text(json.dumps(counts, indent=2) + "\n")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
