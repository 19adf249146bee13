"""Kills processes that set power modes at every step that reaches the disk or the device, and counts what came back.

``python tests/modes/kill_every_step.py --report`` does so on every simulated board, at some steps of each case, and
prints a table; ``--quick`` takes two boards, ``--whole`` leaves out no step, which takes long. Every call by which
powerlab changes anything is a step; a process is killed by SIGKILL before the n-th, for n = 0, 1, ... to its last.
After each death a new process recovers, twice, and the board is compared, file by file, with what it was.

Who is killed: a process that applies a mode (``applied``), sets one to stay (``set``), puts it back (``restore``); one
whose machine then boots anew (``reboot``); an agent without rights whose privileged helper goes on (``client of the
helper``), the helper below it (``helper``), both at once (``both``).
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec
from kill_boards import CLOCKS, board_names, is_taken, modes_to_try, new_board
from kill_cases import HELPED, SCENARIOS, Case, Outcome, carry_out
from kill_steps import warm_run

from powerlab.modes.io import programs

QUICK_BOARDS = ("jetson-agx-xavier", "laptop")
MANY_CORES = ("ampere-altra", "intel-xeon", "nvidia-grace")
QUICK_STEPS, STEPS, FEW_STEPS = 10, 2, 1
"""How many steps of a case are died at, at most. Every case comes by others, the boards are many, and those of many
cores have the files of each of them to look at."""
_NOT_HELPED = ("cpu-quota", "gpu-l", "jetson-clocks")
"""Their knobs go to the helper on real devices only: a simulated one they change by themselves."""


def cases_of(board: str, folder: Path, size: str) -> list[Case]:
    """A mode of every knob and sets of parts applied, and every scenario with some of them."""
    sysroot = new_board(board, folder / "board")
    names = modes_to_try(sysroot, folder / "state")
    taken = [name for name in names if is_taken(sysroot, folder / "state", name)]
    most = {"quick": QUICK_STEPS, "usual": FEW_STEPS if board in MANY_CORES else STEPS, "whole": sys.maxsize}[size]
    vendor = [name for name in taken if "=" not in name and name != CLOCKS]
    helped = [name for name in taken if not any(part in name for part in _NOT_HELPED)]
    first, last = (vendor or taken)[0], taken[-1]
    cases = [Case(board, "applied", name, most) for name in ((first, last) if size == "quick" else names)]
    cases += [Case(board, scenario, last, most) for scenario in ("set", "restore")]
    cases.append(Case(board, "reboot", first, most))
    return cases + [Case(board, who, name, most) for who in HELPED for name in dict.fromkeys((helped[0], helped[-1]))]


def outcomes(boards: Sequence[str], mode: str | None, jobs: int, size: str) -> Iterator[Outcome]:
    """Carry out all cases, as many at a time as there are jobs."""
    programs.completed = warm_run
    gc.freeze()  # forks then share their memory longer
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # where fsync costs nothing
    with tempfile.TemporaryDirectory(dir=place, prefix="powerlab-kill-") as folder:
        if mode:
            cases = [Case(board, "applied", mode, sys.maxsize) for board in boards]
        else:
            cases = [case for board in boards for case in cases_of(board, Path(folder, "list", board), size)]
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(jobs, mp_context=context) as pool:
            yield from pool.map(carry_out, cases, [Path(folder, str(number)) for number in range(len(cases))])


def table(found: Sequence[Outcome], seconds: float) -> str:
    """The counts by board and by who was killed."""
    heads = ("modes", "kills", "restored", "differ")
    boards = dict.fromkeys(outcome.case.board for outcome in found)
    by_board = [_row(board, [outcome for outcome in found if outcome.case.board == board]) for board in boards]
    scenarios = [who for who in SCENARIOS if any(outcome.case.scenario == who for outcome in found)]
    by_scenario = [_row(who, [outcome for outcome in found if outcome.case.scenario == who]) for who in scenarios]
    deaths = sum((outcome.kills for outcome in found), Counter[str]())
    return "\n".join(
        [
            *_aligned([("board", *heads), *by_board, _row("all boards", found)]),
            "",
            *_aligned([("who is killed", *heads), *by_scenario]),
            "",
            "killed before: " + ", ".join(f"{name} {count}" for name, count in deaths.most_common()),
            f"{seconds:.0f} s",
        ]
    )


def _row(title: str, found: Sequence[Outcome]) -> tuple[str, ...]:
    kills = sum(outcome.kills.total() for outcome in found)
    restores = sum(outcome.restores for outcome in found)
    modes = len({(outcome.case.board, outcome.case.mode) for outcome in found})
    return title, str(modes), str(kills), str(restores), str(kills - restores)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  ".join([row[0].ljust(widths[0]), *(row[n].rjust(widths[n]) for n in range(1, len(widths)))]) for row in rows
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--report", action="store_true", help="print tables instead of JSON")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", dest="size", action="store_const", const="quick", help="two boards, fewer modes")
    sizes.add_argument("--whole", dest="size", action="store_const", const="whole", help="every step of every case")
    parser.set_defaults(size="usual")
    parser.add_argument("--board", action="append", help="only this board; may be given again")
    parser.add_argument("--mode", help="only this mode, applied, and at every step of it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args(argv)
    began = time.monotonic()
    boards = args.board or (QUICK_BOARDS if args.size == "quick" else board_names())
    found = list(outcomes(boards, args.mode, args.jobs, args.size))
    failures = [failure for outcome in found for failure in outcome.failures]
    if args.report:
        sys.stdout.write("\n".join([table(found, time.monotonic() - began), *failures, ""]))
    else:
        sys.stdout.write(msgspec.json.encode(found).decode())
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
