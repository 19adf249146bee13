"""How often a gate and a trend say what is not so, and how often a gate finds what it was planned to find.

    python -m bench.claims.gate_rates collect host/ --count 25        # sweeps of this machine, one after another
    python -m bench.claims.gate_rates collect board/ --count 25 -- --board jetson-agx-orin
    python -m bench.claims.gate_rates pack host/ board/               # keeps their figures in bench/claims/sweeps/
    python -m bench.claims.gate_rates rates                           # of every series in bench/claims/sweeps/
    python -m bench.claims.gate_rates drawn                           # sweeps drawn by chance, without measuring

All sweeps of a folder are of one point and nothing changed between them: an A/A series. For each of many turns a pilot
of sweeps is drawn from it, the gate is planned by these alone, as many sweeps as it asks for are drawn for both sides,
and the gate judges them: as they are, where it must not say loss, and with 3 % of throughput taken from the change,
where it must. Draws are with replacement, so that a series of twenty gives any number of sweeps. Trends are judged on
drawn series too. Rates have Wilson's 95 % interval.
"""

from __future__ import annotations

import argparse
import math
import platform
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import msgspec

from bench.claims.recorded_sweeps import FOLDER, RecordedSweeps, packed, runs_of
from powerlab.analysis.gate.gate import GateVerdict, judge
from powerlab.analysis.gate.planning import plan
from powerlab.analysis.trends.trends import trends
from powerlab.boards.processor import cpu_model
from powerlab.domain.run import Run
from powerlab.domain.statistics import NORMAL_95
from powerlab.protocol.sweep_file import read_sweep_file
from powerlab.sysroot import Sysroot

Sweep = Sequence[Run]
METRICS = ("latency_p50_ms", "throughput_img_per_s", "efficiency_img_per_s_per_w")
PLANTED = "throughput_img_per_s"
MAX_LOSS, LOSS = 0.02, 0.03
PILOT = 6
MOST_SWEEPS = 300
SERIES = 24
TITLES = ("false losses", "passes", "3 % found", "false changes")
SHORT = (
    *("--threads", "1", "--repeats", "3", "--idle", "0"),
    *("--duration", "0.5", "--warm-up", "0.2", "--longest-warm-up", "0.5"),
)


@dataclass(slots=True, kw_only=True)
class Rates:
    """What was counted over the turns; ``asked`` is the sweeps that each plan asked for."""

    false: int = 0
    passed: int = 0
    found: int = 0
    alarms: int = 0
    asked: list[int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    collecting = actions.add_parser("collect", epilog="further options of powerlab profile may follow after --")
    collecting.add_argument("folder", type=Path)
    collecting.add_argument("--count", type=int, default=25)
    collecting.add_argument("--model", default="squeezenet")
    rating = actions.add_parser("rates")
    rating.add_argument("names", nargs="*", metavar="NAME", help="series of bench/claims/sweeps/ (default: all)")
    packing = actions.add_parser("pack")
    packing.add_argument("folders", type=Path, nargs="+", help="results files of one series, by its name")
    drawing = actions.add_parser("drawn")
    for action in (rating, drawing):
        action.add_argument("--turns", type=int, default=1000)
    words = list(sys.argv[1:] if argv is None else argv)
    end = words.index("--") if "--" in words else len(words)
    args = parser.parse_args(words[:end])
    if args.action == "collect":
        collect(args.folder, args.count, args.model, words[end + 1 :])
        return 0
    if args.action == "pack":
        for folder in args.folders:
            pack(folder)
        return 0
    print(f"{cpu_model(Sysroot())}, Python {platform.python_version()}, {args.turns} turns")
    print(
        "series                   scatter  sweeps asked for  false losses        passes              3 % found", end=""
    )
    print("           false changes")
    for name, draw in series_of(args):
        print(row(name, draw, args.turns), flush=True)
    return 0


def collect(folder: Path, count: int, model: str, options: Sequence[str]) -> None:
    """Measure the same sweep again and again, each in a process of its own, into files."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        words = ("profile", model, *SHORT, *options, "--database", "none", "--output", f"{folder}/{number:03}.json")
        subprocess.run([sys.executable, "-m", "powerlab.cli", *words], check=False, stdout=subprocess.DEVNULL)


def pack(folder: Path) -> None:
    """Keep the figures of a folder's sweeps under its name."""
    sweeps = [read_sweep_file(path).runs for path in sorted(folder.glob("*.json"))]
    series = packed(folder.name, cpu_model(Sysroot()), sweeps, METRICS)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{folder.name}.json").write_bytes(msgspec.json.encode(series) + b"\n")


def series_of(args: argparse.Namespace) -> Iterator[tuple[str, Callable[[random.Random], Sweep]]]:
    """Yield each series' name and what draws a sweep from it."""
    if args.action == "drawn":
        yield from drawn()
        return
    for name in args.names or sorted(path.stem for path in FOLDER.glob("*.json")):
        series = msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=RecordedSweeps)
        sweeps = runs_of(series)
        yield f"{name} ({len(sweeps)} sweeps)", lambda chance, sweeps=sweeps: chance.choice(sweeps)


def drawn() -> Iterator[tuple[str, Callable[[random.Random], Sweep]]]:
    """Yield series by chance: days that differ little, more than repeats do, and now and then by much."""
    from tests.analysis.gate_sweeps import series

    def normal(between: float) -> Callable[[random.Random], Sweep]:
        return lambda chance: series(1, seed=chance.getrandbits(32), between=between, within=0.005)[0]

    def heavy(chance: random.Random) -> Sweep:
        return normal(0.015 if chance.random() < 0.1 else 0.003)(chance)

    yield "normal, 0.2 %", normal(0.002)
    yield "normal, 0.7 %", normal(0.007)
    yield "one in ten 1.5 %", heavy


def row(name: str, draw: Callable[[random.Random], Sweep], turns: int) -> str:
    """Return a line of the table."""
    chance, counted, scatter = random.Random(1), Rates(asked=[]), 0.0  # noqa: S311 - draws of a simulation
    for _ in range(turns):
        scatter += turn(draw, chance, counted) / turns
    middle, most = int(median(counted.asked)), max(counted.asked)
    cells = (share(one, turns) for one in (counted.false, counted.passed, counted.found, counted.alarms))
    return f"{name:24}  {100 * scatter:5.2f} %  {f'{middle}, up to {most}':13}  {''.join(cells)}".rstrip()


def turn(draw: Callable[[random.Random], Sweep], chance: random.Random, counted: Rates) -> float:
    """Plan, measure and judge once; returns the scatter of the pilot's throughput between sweeps."""
    pilot = [_dated(draw(chance), number) for number in range(PILOT)]
    made = plan(pilot, METRICS, max_loss=MAX_LOSS, found_loss=LOSS)
    size = min(max(PILOT, made.sweeps_needed or MOST_SWEEPS), MOST_SWEEPS)
    before = [*pilot, *(_dated(draw(chance), number) for number in range(PILOT, size))]
    after = [_dated(draw(chance), number, "change") for number in range(size)]
    same = judge(before, after, METRICS, max_loss=MAX_LOSS, found_loss=LOSS)
    slower = judge(before, [_slowed(sweep) for sweep in after], METRICS, max_loss=MAX_LOSS, found_loss=LOSS)
    counted.asked.append(size)
    counted.false += same.verdict is GateVerdict.LOSS
    counted.passed += same.verdict is GateVerdict.PASS
    counted.found += any(one.metric == PLANTED and one.verdict is GateVerdict.LOSS for one in slower.rows)
    history = [("device", _dated(draw(chance), number)) for number in range(SERIES)]
    counted.alarms += any(trend.changes for trend in trends(history, METRICS))
    return next(one.deviation for one in made.rows if one.metric == PLANTED)


def _dated(sweep: Sweep, number: int, name: str = "base") -> Sweep:
    date = f"2026-{1 + number // 28:02}-{1 + number % 28:02}T00:00:00+00:00"
    return [replace(run, sweep_id=f"{name}-{number}", started_at=date) for run in sweep]


def _slowed(sweep: Sweep) -> Sweep:
    """Return a sweep with 3 % of its throughput taken away, and nothing else."""
    return [
        replace(
            run,
            metrics=tuple(
                replace(one, value=one.value * (1 - LOSS)) if one.name == PLANTED else one for one in run.metrics
            ),
        )
        for run in sweep
    ]


def share(count: int, of: int) -> str:
    """Return a rate with its 95 % interval (E. B. Wilson, JASA 22, 1927): ``0.3 % (0.1–0.9)``."""
    rate, z = count / of, NORMAL_95
    centre = rate + z * z / (2 * of)
    reach = z * math.sqrt(rate * (1 - rate) / of + z * z / (4 * of * of))
    low, high = (max(0.0, (centre + side * reach) / (1 + z * z / of)) for side in (-1, 1))
    return f"{100 * rate:5.1f} % ({100 * low:.1f}–{100 * high:.1f})".ljust(21)


if __name__ == "__main__":
    sys.exit(main())
