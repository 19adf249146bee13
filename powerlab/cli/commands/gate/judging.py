"""Carries out ``powerlab gate``."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import msgspec

from powerlab.analysis.best import GOALS
from powerlab.analysis.comparison import WITHOUT_RATIO
from powerlab.analysis.gate.gate import FOUND_FACTOR, GateVerdict, judge
from powerlab.analysis.gate.planning import plan
from powerlab.analysis.trends.versions import differences, versions
from powerlab.cli import EXIT_OK
from powerlab.cli.arguments.output_file import writable
from powerlab.cli.commands.gate.documents import gate_document, plan_document
from powerlab.cli.commands.gate.markdown import markdown
from powerlab.cli.commands.gate.report import show_gate, show_plan
from powerlab.cli.commands.gate.sides import baseline_of, candidate_of
from powerlab.cli.stored.sweeps import SweepRuns
from powerlab.domain.errors import PowerlabError
from powerlab.domain.metric_names import metric_name
from powerlab.domain.quantity import METRICS

EXIT_LOSS = 1
EXIT_NOT_ENOUGH_DATA = 3
_STATUS = {GateVerdict.PASS: EXIT_OK, GateVerdict.LOSS: EXIT_LOSS, GateVerdict.OPEN: EXIT_NOT_ENOUGH_DATA}
_LARGEST = 0.9


def judged(args: argparse.Namespace) -> int:
    """Judge a change; returns the exit status.

    Raises:
        PowerlabError: the request makes no sense, or there is nothing to judge.
    """
    names, (max_loss, found_loss) = _metrics(args.metric), _losses(args)
    if args.json and args.markdown == "-":
        raise PowerlabError("--json and --markdown - both write to standard output; give --markdown a file.")
    path = None if args.markdown == "-" else writable("--markdown", args.markdown)
    candidate = candidate_of(args)
    baseline = baseline_of(args, candidate)
    before, after = ([sweep.runs for sweep in side] for side in (baseline, candidate))
    report = judge(before, after, names, max_loss=max_loss, found_loss=found_loss)
    changed = differences(versions(chain(*before)), versions(chain(*after)))
    title = _title(candidate)
    if args.json:
        print(_pretty(gate_document(report, changed)))
    elif args.markdown == "-":
        print(markdown(report, changed, title), end="")
    else:
        show_gate(report, changed, title)
    if path is not None:
        _write(path, markdown(report, changed, title))
    return _STATUS[report.verdict]


def planned(args: argparse.Namespace) -> int:
    """Say what a gate takes; returns the exit status.

    Raises:
        PowerlabError: the request makes no sense, or the baseline does not show how much sweeps differ.
    """
    if args.sweeps or args.markdown:
        raise PowerlabError("--plan looks at the baseline alone; leave out SWEEP and --markdown.")
    names, (max_loss, found_loss) = _metrics(args.metric), _losses(args)
    baseline = baseline_of(args)
    made = plan([sweep.runs for sweep in baseline], names, max_loss=max_loss, found_loss=found_loss)
    if args.json:
        print(_pretty(plan_document(made)))
    else:
        show_plan(made, _title(baseline))
    return EXIT_OK


def _title(sweeps: Sequence[SweepRuns]) -> str:
    models = dict.fromkeys(model.partition("@")[0] for sweep in sweeps for model in sweep.plan.models)
    return f"{', '.join(models)} on {sweeps[0].device}"


def _metrics(words: Sequence[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(map(metric_name, words)))
    for name in names:
        if METRICS[name].unit in WITHOUT_RATIO:
            raise PowerlabError(
                f"{name} is in {METRICS[name].unit}, which has no ratios to judge; name another metric."
            )
    return names or tuple(GOALS.values())


def _losses(args: argparse.Namespace) -> tuple[float, float]:
    """Return the loss that may be and the one to find, as parts."""
    max_loss = _part("--max-loss", args.max_loss)
    found_loss = FOUND_FACTOR * max_loss if args.find is None else _part("--find", args.find)
    if found_loss <= max_loss:
        raise PowerlabError(
            f"--find {args.find} is not above --max-loss {args.max_loss}, and what may be lost needs no finding; give "
            "a larger one."
        )
    return max_loss, found_loss


def _part(option: str, word: str) -> float:
    try:
        part = float(word.strip().removesuffix("%")) / 100
    except ValueError:
        part = math.nan
    if not 0 < part <= _LARGEST:
        raise PowerlabError(
            f"{option} {word} is no loss in per cent; give a number above 0 and up to {100 * _LARGEST:g}, such as 2%."
        )
    return part


def _pretty(document: object) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PowerlabError(f"cannot write --markdown {path} ({error.strerror}); choose another file.") from error
    print(f"powerlab: wrote {path}", file=sys.stderr)
