"""What each simulated board must say of itself and of a short sweep, kept in ``golden/``.

``python tests/e2e/golden_boards.py`` writes the files anew after a change that was meant; look at the difference.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from child_process import ChildProcess
from powerlab.boards.registry import BOARDS

GOLDEN = Path(__file__).with_name("golden")
PROGRAM = Path(sys.executable).with_name("powerlab")
_OF_THE_HOST = ("name", "architecture")


def variants() -> tuple[str, ...]:
    """Every board that can be simulated, a Jetson once for each JetPack: ``jetson-agx-xavier@5``."""
    found = []
    for board in BOARDS.values():
        if board.simulatable:
            found += [f"{board.name}@{jetpack}" for jetpack in board.jetpacks] or [board.name]
    return tuple(found)


DESCRIBED = ("amd-gpu-workstation", "mi210-workstation", "intel-gpu-workstation")
"""Boards that only describe themselves; the other workstations and knobs of theirs are swept elsewhere."""
AT_RELEASES = (
    *("jetson-agx-orin@5", "jetson-agx-xavier@4", "jetson-orin-nano@5", "jetson-orin-nx@5", "jetson-orin-nx@6"),
    *("jetson-xavier-nx@4", "jetson-xavier-nx@5"),
)
"""Boards that are swept before a release only: another of the family, or the same with another JetPack, is always."""
ON_GPU = "h100-workstation"
"""The board that is swept on its card."""


def swept() -> tuple[str, ...]:
    """Return the variants that are swept, too."""
    return tuple(variant for variant in variants() if variant not in DESCRIBED)


@contextmanager
def simulated(variant: str, directory: Path) -> Iterator[Path]:
    """Write a board's tree and move its sensors, with the program that users have."""
    name, _, jetpack = variant.partition("@")
    tree = directory / "tree"
    words = [PROGRAM, "boards", "simulate", name, tree, "--run", *(["--jetpack", jetpack] if jetpack else [])]
    with ChildProcess(list(map(str, words)), stdout=subprocess.PIPE, text=True) as process:
        try:
            said = ""
            while "sensors are live" not in said:
                line = process.stdout.readline() if process.stdout else ""
                if not line:
                    raise RuntimeError(f"the simulator of {variant} ended: {said}")
                said += line
            yield tree
        finally:
            process.terminate()


def described(doctor: Mapping[str, Any]) -> dict[str, Any]:
    """Return what may not change by itself in what the doctor says."""
    return {
        "device": {key: value for key, value in doctor["device"].items() if key not in _OF_THE_HOST},
        "sources": {source["source"]: source["availability"] for source in doctor["sources"]},
        "rails": {
            f"{rail['source']}:{rail['name']}": [rail["quantity"], rail["relative_error"], rail["provenance"]]
            for source in doctor["sources"]
            for rail in source["rails"]
        },
        "total": doctor["total"],
        "knobs": {knob["knob"]: knob["availability"] for knob in doctor["knobs"]},
        "modes": [mode["name"] for mode in doctor["modes"]],
        "watches": {watch["watch"]: watch["availability"] for watch in doctor["watches"]},
    }


def main() -> None:
    """Write every golden file."""
    for variant in variants():
        with tempfile.TemporaryDirectory() as directory, simulated(variant, Path(directory)) as tree:
            done = subprocess.run(
                [PROGRAM, "doctor", "--sysroot", tree, "--json"], capture_output=True, text=True, check=True
            )
        path = GOLDEN / f"{variant}.json"
        path.write_text(json.dumps(described(json.loads(done.stdout)), indent=1, ensure_ascii=False) + "\n")
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
