"""A plan made from the words of a command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeVar

from powerlab.domain.device import Capabilities, Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.sweep import SweepPlan

_T = TypeVar("_T", int, float)
ALL_MODES = "all"


_OPTIONS = (
    ("--batch", "N,...", "1", "images per inference"),
    ("--modes", "NAME,...", "current", "power modes, or all; see powerlab modes"),
    ("--repeats", "N", "3", "runs of each point, at least 3"),
    ("--duration", "S", "5", "timed seconds of a run"),
    ("--warm-up", "S", "1", "untimed seconds before it"),
    ("--idle", "S", "2", "seconds of the idle baseline in each mode"),
    ("--seed", "N", "0", "makes the order of the runs repeatable"),
    ("--engine", "NAME", "builtin", "what runs the models"),
)


def add_plan_arguments(parser: argparse.ArgumentParser, models_help: str) -> None:
    """Add the words that :func:`plan_from` reads: the models, and one option for each other part of a plan."""
    parser.add_argument("models", nargs="+", metavar="MODEL", help=models_help)
    plan = parser.add_argument_group("what is run")
    plan.add_argument("--threads", metavar="N,...", help="thread counts (default: 1 and all cores)")
    for option, metavar, default, words in _OPTIONS:
        plan.add_argument(option, metavar=metavar, default=default, help=f"{words} (default: {default})")


def named_modes(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the power modes that the command line names; none for ``all``."""
    return () if args.modes.strip() == ALL_MODES else _words(args.modes)


def plan_from(args: argparse.Namespace, device: Device, capabilities: Capabilities) -> SweepPlan:
    """Return the plan; threads default to 1 and as many as every named mode has cores.

    Raises:
        PowerlabError: a word is no number.
    """
    modes = _modes(args.modes, capabilities)
    return SweepPlan(
        models=tuple(args.models),
        threads=_numbers("--threads", args.threads, int)
        if args.threads
        else _default_threads(modes, device, capabilities),
        batch_sizes=_numbers("--batch", args.batch, int),
        modes=modes,
        repeats=_number("--repeats", args.repeats, int),
        seed=_number("--seed", args.seed, int),
        duration_s=_number("--duration", args.duration, float),
        warm_up_s=_number("--warm-up", args.warm_up, float),
        idle_s=_number("--idle", args.idle, float),
        engine=args.engine,
    )


def _modes(text: str, capabilities: Capabilities) -> tuple[str, ...]:
    """Return the named modes; ``all`` is every mode that can be set without a reboot."""
    if text.strip() == ALL_MODES:
        return tuple(mode.name for mode in capabilities.modes if not mode.requires_reboot)
    return _words(text)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _default_threads(modes: tuple[str, ...], device: Device, capabilities: Capabilities) -> tuple[int, ...]:
    online = [mode.online_cores for mode in capabilities.modes if mode.name in modes and mode.online_cores is not None]
    most = min([device.core_count, *online])
    return (1,) if most == 1 else (1, most)


def _numbers(option: str, text: str, kind: Callable[[str], _T]) -> tuple[_T, ...]:
    return tuple(_number(option, word, kind) for word in text.split(",") if word.strip())


def _number(option: str, text: str, kind: Callable[[str], _T]) -> _T:
    try:
        return kind(text.strip())
    except ValueError as error:
        wanted = "a whole number" if kind is int else "a number of seconds"
        raise PowerlabError(f"{option} got {text.strip()!r}, but each of its values must be {wanted}.") from error
