"""How often powerlab claims a winner where there is none: A/A draws from repeats of one point.

    python -m bench.claims.false_claims                       # every data set of bench/claims/repeats/, as a table
    python -m bench.claims.false_claims --record here         # 40 short repeats on this machine, which should be quiet
    python -m bench.claims.false_claims --record jetson-nano  # 30 on a simulated board

A draw takes consecutive repeats of one and the same point, cuts them into blocks as a sweep does, gives labels at
random within every block, and asks the rule of powerlab/analysis/verdict.py for a winner. All labels are the same
point, so any winner is false. *Two sweeps* gives two labels at random without blocks, and so compares without pairs. A
cell is the highest rate of all metrics in percent, and the 95 % interval of that rate (Wilson, 1927).
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median, stdev, variance
from typing import Any

import msgspec

from powerlab.analysis import comparison
from powerlab.analysis.comparison import LEVEL
from powerlab.analysis.verdict import Decision, standing
from powerlab.boards.processor import cpu_model
from powerlab.domain.quantity import METRICS, Metric, Provenance
from powerlab.domain.run import Contribution, EffectKind, Run, Verdict
from powerlab.domain.statistics import NORMAL_95
from powerlab.domain.students_t import two_sided_quantile
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Workload
from powerlab.sysroot import Sysroot

FOLDER = Path(__file__).parent / "repeats"
HERE = "here"
COMPARED = ("latency_p50_ms", "throughput_img_per_s", "power_w", "efficiency_img_per_s_per_w")
DRAWS = 1000
STRICT = 0.01
_SHORT = "--min-inferences 10 --warm-up 0.2 --longest-warm-up 0.4 --idle 0.3 --database none --json"
_POINT = Point(workload=Workload(model="squeezenet", batch_size=1), threads=1, mode="current")


class Repeats(msgspec.Struct):
    """Repeats of one point, in the order of time.

    Attributes:
        name: the machine.
        processor: what ran them; of a simulated board, the host's.
        provenance: by metric, what the figures are.
        values: by metric, one figure a repeat, in its unit.
        budget: the systematic lines of the figures, as metric, origin, effect and relative standard uncertainty.
    """

    name: str
    processor: str
    provenance: dict[str, str]
    values: dict[str, list[float]]
    budget: list[tuple[str, str, str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """What is drawn: so many labels, so many repeats of each, in blocks of one sweep or as sweeps of their own."""

    labels: int
    repeats: int
    one_sweep: bool = True

    @property
    def title(self) -> str:
        """A column's title."""
        return f"{self.labels if self.one_sweep else 'two sweeps'} x {self.repeats}"


DESIGNS = (
    Design(labels=2, repeats=3),
    Design(labels=2, repeats=5),
    Design(labels=8, repeats=3),
    Design(labels=2, repeats=3, one_sweep=False),
)


def runs_of(repeats: Repeats) -> list[Run]:
    """Return the repeats as valid runs: the study is about the rule, so other findings are set aside.

    Lines of one effect are put together: relative to its figure each is the same in every run, so that in a ratio those
    of a sensor cancel one by one, and the others add as the root of the sum of their squares.
    """
    count = min(map(len, repeats.values.values()))
    squares: dict[tuple[str, str], float] = {}
    for name, _, effect, relative in repeats.budget:
        squares[name, effect] = squares.get((name, effect), 0.0) + relative**2
    lines = [
        Contribution(metric=name, origin="", effect=effect, kind=EffectKind.B, standard_uncertainty=math.sqrt(square))
        for (name, effect), square in squares.items()
    ]
    return [
        Run(
            id=str(place),
            sweep_id="sweep",
            point=_POINT,
            repeat=place,
            started_at="2026-01-01T00:00:00+00:00",
            window_ns=(1, 2),
            inference_count=1,
            verdict=Verdict.VALID,
            findings=(),
            metrics=tuple(
                Metric(name=name, value=values[place], provenance=Provenance(repeats.provenance[name]))
                for name, values in repeats.values.items()
            ),
            total=None,
            budget=tuple(
                replace(line, standard_uncertainty=line.standard_uncertainty * repeats.values[line.metric][place])
                for line in lines
            ),
        )
        for place in range(count)
    ]


def labelled(count: int, design: Design, chance: random.Random) -> list[list[int]]:
    """Return which of the repeats each label gets in one draw, in the order of the blocks."""
    wanted = design.labels * design.repeats
    start = chance.randrange(count - wanted + 1)
    window = list(range(start, start + wanted))
    if not design.one_sweep:
        chance.shuffle(window)
        return [window[label :: design.labels] for label in range(design.labels)]
    blocks = [window[at : at + design.labels] for at in range(0, wanted, design.labels)]
    return [list(places) for places in zip(*(chance.sample(one, len(one)) for one in blocks), strict=True)]


def as_measured(runs: Sequence[Run], labels: Sequence[Sequence[int]], design: Design) -> list[list[Run]]:
    """Return the runs of every label as the repeats of one sweep, or of one sweep each."""
    return [
        [
            replace(runs[place], sweep_id="sweep" if design.one_sweep else str(label), repeat=block)
            for block, place in enumerate(places)
        ]
        for label, places in enumerate(labels)
    ]


def may_claim(labels: Sequence[Sequence[float]], *, higher: bool, paired: bool) -> bool:
    """Say whether a winner is possible: whether the scatter alone tells the best label from the next.

    What a claim takes besides (the budget, the other rivals) makes it rarer, and degrees of freedom are taken as the
    most that they can be. Nearly all draws end here, and need not be asked of the rule.
    """
    best, rival, *_ = sorted(labels, key=median, reverse=higher)
    if paired:
        differences = [math.log(one / other) for one, other in zip(best, rival, strict=True)]
        mean, error, degrees = fmean(differences), stdev(differences) / math.sqrt(len(best)), len(best) - 1
    else:
        ones, others = ([math.log(one) for one in values] for values in (best, rival))
        mean, degrees = fmean(ones) - fmean(others), len(ones) + len(others) - 2
        error = math.sqrt(variance(ones) / len(ones) + variance(others) / len(others))
    return abs(mean) >= two_sided_quantile(LEVEL / comparison.CARE, degrees) * error


def claims_a_winner(labels: Sequence[Sequence[Run]], name: str, level: float = LEVEL) -> bool:
    """Say whether the rule calls the best of the labels the winner by one metric."""
    sign = -1 if METRICS[name].higher_is_better else 1
    best, *rivals = sorted(labels, key=lambda runs: sign * median(run.metric(name).value for run in runs))  # type: ignore[union-attr]
    return standing(best, rivals, name, level=level).decision is Decision.WINNER


def false_claims(repeats: Repeats, design: Design, *, draws: int = DRAWS, seed: int = 0) -> dict[str, tuple[int, int]]:
    """Return by metric in how many draws a winner was claimed, at 95 % and at 99 %."""
    chance = random.Random(f"{repeats.name} {design.title} {seed}")  # noqa: S311  draws to repeat, not a secret
    runs, found = runs_of(repeats), dict.fromkeys(repeats.values, (0, 0))
    for _ in range(draws):
        places = labelled(len(runs), design, chance)
        for name, (usual, strict) in found.items():
            values = [[repeats.values[name][place] for place in label] for label in places]
            if may_claim(values, higher=METRICS[name].higher_is_better, paired=design.one_sweep):
                labels = as_measured(runs, places, design)
                claimed = claims_a_winner(labels, name)
                surely = claimed and claims_a_winner(labels, name, STRICT)
                found[name] = (usual + claimed, strict + surely)
    return found


def record(name: str) -> Repeats:
    """Measure short repeats of one point here or on a simulated board."""
    words = (
        ["--threads", "1", "--repeats", "40"]
        if name == HERE
        else ["--board", name, "--threads", "2", "--repeats", "30"]
    )
    powerlab = Path(sys.executable).with_name("powerlab")
    for duration in ("0.4", "2.5", "22"):  # slow sensors take longer
        command = [str(powerlab), "profile", "squeezenet", *words, "--duration", duration, *_SHORT.split()]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        found = condensed(name, json.loads(done.stdout)) if done.stdout else None
        if found is not None:
            return found
    raise SystemExit(f"{name} could not be measured.")


def condensed(name: str, document: dict[str, Any]) -> Repeats | None:
    """Return what the study needs of a sweep: the repeats in their order in time, and their median relative budget.

    None where fewer than half of the runs have every figure.
    """
    runs = sorted(document["runs"], key=lambda run: run["repeat"])
    by_name = [{metric["name"]: metric for metric in run["metrics"]} for run in runs]
    whole = [found for found in by_name if all(name in found for name in COMPARED)]
    if len(whole) < len(runs) / 2:
        return None
    lines: dict[tuple[str, str, str], list[float]] = {}
    for run, found in zip(runs, by_name, strict=True):
        for line in run["budget"]:
            if line["kind"] == EffectKind.B and line["metric"] in COMPARED and line["metric"] in found:
                key = (line["metric"], line["origin"], line["effect"])
                lines.setdefault(key, []).append(line["standard_uncertainty"] / found[line["metric"]]["value"])
    return Repeats(
        name=name,
        processor=cpu_model(Sysroot(Path("/"))),
        provenance={key: whole[0][key]["provenance"] for key in COMPARED},
        values={key: [float(f"{found[key]['value']:.7g}") for found in whole] for key in COMPARED},
        budget=[(*key, float(f"{median(values):.4g}")) for key, values in lines.items()],
    )


def wilson(claims: int, draws: int) -> tuple[float, float]:
    """Return the 95 % interval of a rate (E. B. Wilson, Journal of the American Statistical Association 22, 1927)."""
    share, square = claims / draws, NORMAL_95**2 / draws
    middle = share + square / 2
    half = NORMAL_95 * math.sqrt(share * (1 - share) / draws + square / (4 * draws))
    return max(0.0, (middle - half) / (1 + square)), (middle + half) / (1 + square)


def main() -> None:
    """Record a data set, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="data sets (default: all)")
    parser.add_argument("--record", metavar="NAME", help="measure a data set: here, or a simulated board")
    parser.add_argument("--draws", type=int, default=DRAWS, help=f"draws per cell (default: {DRAWS})")
    args = parser.parse_args()
    if args.record:
        found = record(args.record)
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{args.record}.json").write_bytes(msgspec.json.encode(found) + b"\n")
        return
    names = args.names or sorted(path.stem for path in FOLDER.glob("*.json"))
    sets = [msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Repeats) for name in names]
    print_table(sets, args.draws)


def print_table(sets: Sequence[Repeats], draws: int) -> None:
    """Print a row for every data set: the worst metric's rate at a 95 % claim, and at a 99 % claim."""
    print(f"{draws} draws a cell; percent of draws with a false winner at 95 %, its interval; in brackets at 99 %")
    print(f"processor: {', '.join(dict.fromkeys(one.processor for one in sets))}; scatter: of latency and of power")
    print("| data set | repeats | scatter % | " + " | ".join(design.title for design in DESIGNS) + " |")
    print("|---" * (3 + len(DESIGNS)) + "|")
    for repeats in sets:
        cells = []
        for design in DESIGNS:
            found = false_claims(repeats, design, draws=draws)
            usual, strict = (max(pair[place] for pair in found.values()) for place in (0, 1))
            low, high = wilson(usual, draws)
            cells.append(f"{100 * usual / draws:.1f} ({100 * low:.1f}–{100 * high:.1f}) [{100 * strict / draws:.1f}]")
        print(
            f"| {repeats.name} | {len(repeats.values[COMPARED[0]])} | {_scatter(repeats)} | {' | '.join(cells)} |",
            flush=True,
        )


def _scatter(repeats: Repeats) -> str:
    found = [100 * stdev(repeats.values[name]) / fmean(repeats.values[name]) for name in ("latency_p50_ms", "power_w")]
    return " / ".join(f"{one:.2f}" for one in found)


if __name__ == "__main__":
    main()
