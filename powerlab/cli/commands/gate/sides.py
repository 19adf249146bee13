"""The two sides of a gate: the sweeps of the change, and those of the baseline."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from powerlab.cli.stored.baselines import open_baselines
from powerlab.cli.stored.sweeps import SweepRuns, find_sweep, find_sweeps
from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.protocol.baselines import Baseline

DEFAULT_BASELINE = "main"
_RESULTS = (".json", ".ndjson")


def candidate_of(args: argparse.Namespace) -> tuple[SweepRuns, ...]:
    """Return the sweeps of the change; raises PowerlabError where there are none, or of several devices."""
    if not args.sweeps:
        raise PowerlabError("a gate judges sweeps; name at least one, or give --plan to see how many it takes.")
    found = _distinct(sweep for word in dict.fromkeys(args.sweeps) for sweep in _found(word, args))
    _check_device(found)
    return found


def baseline_of(args: argparse.Namespace, candidate: Sequence[SweepRuns] = ()) -> tuple[SweepRuns, ...]:
    """Return the sweeps of the baseline; of a named one, those of the candidate's device.

    Raises:
        PowerlabError: there is no such baseline, it has no sweep of that device, or it holds the candidate.
    """
    names = _names(args)
    found = _distinct(
        sweep
        for word in dict.fromkeys(args.baseline or [DEFAULT_BASELINE])
        for sweep in (_named(names[word], args, candidate) if word in names else _found(word, args, list(names)))
    )
    judged = {sweep.id for sweep in candidate}
    both = next((sweep.id for sweep in found if sweep.id in judged), None)
    if both is not None:
        raise PowerlabError(f"the sweep {both} is part of the baseline; judge another, or name another baseline.")
    _check_device((*candidate, *found))
    return found


def _names(args: argparse.Namespace) -> dict[str, Baseline]:
    words = args.baseline or [DEFAULT_BASELINE]
    if all(Path(word).exists() for word in words):
        return {}
    with open_baselines(args) as store:
        return {} if store is None else {one.name: one for one in store.baselines()}


def _named(baseline: Baseline, args: argparse.Namespace, candidate: Sequence[SweepRuns]) -> tuple[SweepRuns, ...]:
    device = candidate[0].device if candidate else None
    found = [sweep.sweep_id for sweep in baseline.sweeps if device in {None, sweep.device_name}]
    if not found:
        names = ", ".join(dict.fromkeys(sweep.device_name for sweep in baseline.sweeps))
        raise PowerlabError(
            f"the baseline {baseline.name!r} has no sweep of {device}, only of {names}; `powerlab baseline set "
            f"{baseline.name} SWEEP` adds one."
        )
    return tuple(find_sweep(sweep_id, args) for sweep_id in found)


def _found(word: str, args: argparse.Namespace, names: Sequence[str] = ()) -> tuple[SweepRuns, ...]:
    if Path(word).is_dir():
        files = sorted(path for path in Path(word).iterdir() if path.suffix in _RESULTS)
        if not files:
            raise PowerlabError(f"the folder {word} holds no results file (.ndjson or .json); name another.")
        return tuple(find_sweep(str(path), args) for path in files)
    try:
        return find_sweeps(word, args)
    except PowerlabError as error:
        if word not in (args.baseline or [DEFAULT_BASELINE]) or Path(word).exists():
            raise
        known = f"; the baselines are: {', '.join(names)}" if names else ""
        raise PowerlabError(
            f"there is no baseline, sweep or file {word!r}{meant(word, names)}{known}; `powerlab baseline set {word} "
            "SWEEP` makes one."
        ) from error


def _distinct(sweeps: Iterable[SweepRuns]) -> tuple[SweepRuns, ...]:
    return tuple({sweep.id: sweep for sweep in sweeps}.values())


def _check_device(sweeps: Sequence[SweepRuns]) -> None:
    devices = sorted({f"{sweep.device}{' (simulated)' if sweep.simulated else ''}" for sweep in sweeps})
    if len(devices) > 1:
        raise PowerlabError(
            f"the sweeps are of different devices ({', '.join(devices)}), which says nothing about the change; measure "
            "both sides on one device."
        )
