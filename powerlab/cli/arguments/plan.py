"""The options that describe a sweep plan."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TypeVar

from powerlab.domain.accuracy import DEFAULT_LEAST_SQNR_DB
from powerlab.domain.choices import meant
from powerlab.domain.counts import counts
from powerlab.domain.device import Capabilities, Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.rigour import LEVELS, Level, Rigour
from powerlab.domain.sweep import SEARCH_GOALS, USUAL_SEARCH_PERCENT, SweepPlan
from powerlab.domain.training import OPTIMIZERS
from powerlab.domain.workload import Preparation, Processor, Recompute, Scenario, WorkloadKind
from powerlab.search.proposals import proposed_modes

_T = TypeVar("_T", int, float)
_E = TypeVar("_E", bound=StrEnum)
ALL_MODES = "all"
_EPSILON = f"{USUAL_SEARCH_PERCENT:g}%"

_LISTS = (
    ("--batch", "N,...", "1", "images per inference, such as 1,4-8"),
    ("--modes", "NAME,...", "current", "power modes, or all; see powerlab modes"),
    ("--engine", "NAME,...", "builtin", "inference engines, or all that are installed"),
    ("--precision", "NAME,...", "fp32", "number formats"),
    ("--scenario", "NAME,...", "single-stream", "single-stream, multi-stream, server, offline"),
    ("--slices", "N,...", "1", "slices a batch is split into, run concurrently"),
    ("--recompute", "NAME,...", "no", "whether training recomputes activations instead of keeping them: no, yes"),
    ("--queues", "N,...", "1", "GPU queues that slices are spread over; powerlab doctor says how many there are"),
)
_LEVELS = (
    ("--repeats", "N", "repeats", "runs per point, at least 3"),
    ("--duration", "S", "duration_s", "measured seconds per run"),
    ("--min-inferences", "N", "min_inferences", "minimum inferences per run"),
    ("--warm-up", "S", "warm_up_s", "minimum warm-up in seconds"),
    ("--longest-warm-up", "S", "longest_warm_up_s", "maximum warm-up: stop waiting for a steady state after S seconds"),
    ("--idle", "S", "idle_s", "seconds of idle baseline before and after each run"),
    (
        "--cool-down",
        "S",
        "cool_down_s",
        "maximum wait in seconds for the device to return to the starting temperature of earlier runs",
    ),
)


def add_plan_arguments(
    parser: argparse.ArgumentParser, models_help: str, processor: Sequence[str] = ("--processor",)
) -> None:
    """Add the options that :func:`plan_from` reads: the models, and one option for each other part of a plan.

    Args:
        parser: of the command.
        models_help: what may be named as a model.
        processor: names of the option for what computes; ``--device`` too where that does not mean a machine.
    """
    parser.add_argument("models", nargs="+", metavar="MODEL", help=models_help)
    plan = parser.add_argument_group("sweep")
    plan.add_argument(
        "--workload",
        choices=list(WorkloadKind),
        default=WorkloadKind.INFERENCE,
        help="inference, or train: steps of training on random data (default: inference)",
    )
    plan.add_argument(
        "--optimizer",
        metavar="NAME,...",
        help=f"how steps of training move the weights: {', '.join(OPTIMIZERS)} (default: {OPTIMIZERS[0]})",
    )
    plan.add_argument("--threads", metavar="N,...", help="thread counts, such as 1,2,4-8 (default: 1 and all cores)")
    for option, metavar, default, words in _LISTS:
        plan.add_argument(option, metavar=metavar, default=default, help=f"{words} (default: {default})")
    plan.add_argument(
        *processor,
        dest="processor",
        metavar="NAME,...",
        default=Processor.CPU.value,
        help="what computes: cpu, gpu (default: cpu); see powerlab engine backends",
    )
    plan.add_argument(
        "--spin-us", metavar="N,...", help="microseconds that idle threads spin (default: the engine's own)"
    )
    plan.add_argument("--cores", metavar="LIST", action="append", help="cores to use, such as 0-3; may be repeated")
    plan.add_argument(
        "--preparation",
        choices=list(Preparation),
        default=Preparation.OUTSIDE,
        help="whether input preparation is inside the timed part (default: outside)",
    )
    plan.add_argument("--latency-bound-ms", metavar="MS", default="0", help="p99 latency bound of the server scenario")
    plan.add_argument(
        "--min-sqnr",
        metavar="DB",
        default=f"{DEFAULT_LEAST_SQNR_DB:g}",
        help="flag a precision whose outputs have less signal to quantisation noise beside fp32 "
        f"(default: {DEFAULT_LEAST_SQNR_DB:g} dB)",
    )
    plan.add_argument("--seed", metavar="N", default="0", help="seed of the shuffled run order (default: 0)")
    care = parser.add_argument_group("rigour")
    care.add_argument("--rigour", choices=list(Rigour), default=Rigour.QUICK, help=_rigour_words())
    care.add_argument(
        "--until", metavar="PERCENT", default="0", help="repeat until the 95 %% interval of img/s/W is within ±PERCENT"
    )
    for option, metavar, name, words in _LEVELS:
        defaults = "/".join(f"{getattr(level, name):g}" for level in LEVELS.values())
        care.add_argument(option, metavar=metavar, help=f"{words} (default: {defaults})")
    search = parser.add_argument_group("search")
    search.add_argument(
        "--search", action="store_true", help="measure only the points that may still be best, chosen as results come"
    )
    search.add_argument(
        "--search-epsilon",
        metavar="PERCENT",
        help=f"stop when no other point can be better by more than PERCENT, 95 %% confidence (default: {_EPSILON}%)",
    )
    search.add_argument(
        "--goal", metavar="NAME,...", help=f"what to find the best of (default: {','.join(SEARCH_GOALS)})"
    )
    search.add_argument(
        "--propose-modes",
        action="store_true",
        help="add power modes nobody named, combined of cores and clocks the device offers",
    )
    heat = parser.add_argument_group("temperature")
    heat.add_argument(
        "--max-temperature-c", metavar="C", help="abort a run that exceeds this temperature (default: no limit)"
    )
    heat.add_argument(
        "--start-below-temperature-c",
        metavar="C",
        help="wait until the device is cooler before each run (default: 10 °C below the limit, if there is one)",
    )
    heat.add_argument(
        "--longest-cooling",
        metavar="S",
        default="900",
        help="maximum wait for that in seconds; then the run fails (default: 900)",
    )


def _rigour_words() -> str:
    return "; ".join(f"{name}: {level.words}" for name, level in LEVELS.items())


def named_modes(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the power modes named by ``--modes``; an empty tuple for ``all``."""
    return () if args.modes.strip() == ALL_MODES else _words(args.modes)


def plan_from(args: argparse.Namespace, device: Device, capabilities: Capabilities) -> SweepPlan:
    """Return the plan; threads default to 1 and the number of cores that every named mode has.

    Raises:
        PowerlabError: an option has an invalid value.
    """
    named = _modes(args.modes, capabilities)
    processors = tuple(processor_of(word) for word in _words(args.processor))
    threads = _threads(args, processors) or _default_threads(named, device, capabilities)
    proposed = _proposed(args, named, threads, processors, capabilities)
    modes = (*named, *proposed)
    level = LEVELS[Rigour(args.rigour)]

    def chosen(option: str, given: str | None, kind: Callable[[str], _T], otherwise: _T) -> _T:
        return otherwise if given is None else _number(option, given, kind)

    workload = WorkloadKind(args.workload)
    usual = (OPTIMIZERS[0],) if workload is WorkloadKind.TRAIN else ()
    warm_up_s = chosen("--warm-up", args.warm_up, float, level.warm_up_s)
    return SweepPlan(
        models=tuple(args.models),
        threads=threads,
        workload=workload,
        optimizers=usual if args.optimizer is None else _words(args.optimizer),
        batch_sizes=counts("--batch", args.batch),
        modes=modes,
        engines=_words(args.engine),
        processors=processors,
        precisions=_words(args.precision),
        scenarios=tuple(_member(Scenario, word) for word in _words(args.scenario)),
        slices=counts("--slices", args.slices),
        recompute=tuple(_member(Recompute, word) for word in _words(args.recompute)),
        queues=counts("--queues", args.queues),
        spin_us=(None,) if args.spin_us is None else _numbers("--spin-us", args.spin_us, int),
        cores=tuple(args.cores or [""]),
        preparation=Preparation(args.preparation),
        latency_bound_ms=_number("--latency-bound-ms", args.latency_bound_ms, float),
        rigour=Rigour(args.rigour),
        until_percent=_percentage("--until", args.until),
        seed=_number("--seed", args.seed, int),
        repeats=chosen("--repeats", args.repeats, int, level.repeats),
        duration_s=chosen("--duration", args.duration, float, level.duration_s),
        min_inferences=chosen("--min-inferences", args.min_inferences, int, level.min_inferences),
        warm_up_s=warm_up_s,
        longest_warm_up_s=chosen("--longest-warm-up", args.longest_warm_up, float, _longest_s(level, warm_up_s)),
        idle_s=chosen("--idle", args.idle, float, level.idle_s),
        cool_down_s=chosen("--cool-down", args.cool_down, float, level.cool_down_s),
        least_sqnr_db=_number("--min-sqnr", args.min_sqnr.strip().removesuffix("dB"), float),
        max_temperature_c=_celsius("--max-temperature-c", args.max_temperature_c),
        start_below_temperature_c=_celsius("--start-below-temperature-c", args.start_below_temperature_c),
        longest_cooling_s=_number("--longest-cooling", args.longest_cooling, float),
        search_percent=_epsilon(args),
        search_goals=() if args.goal is None else _words(args.goal),
        proposed_modes=proposed,
    )


def _epsilon(args: argparse.Namespace) -> float:
    """Return what a search counts as better, in percent; 0 where every point is measured."""
    if not args.search:
        if args.goal is not None:
            raise PowerlabError("--goal says what to search for; add --search, or leave it out.")
        if args.search_epsilon is not None:
            raise PowerlabError("--search-epsilon says when a search stops; add --search, or leave it out.")
        return 0.0
    word = _EPSILON if args.search_epsilon is None else args.search_epsilon
    percent = _percentage("--search-epsilon", word)
    if percent <= 0:
        raise PowerlabError(f"invalid --search-epsilon {word.strip()!r}: give a percentage above 0.")
    return percent


def _proposed(
    args: argparse.Namespace,
    named: tuple[str, ...],
    threads: tuple[int, ...],
    processors: tuple[Processor, ...],
    capabilities: Capabilities,
) -> tuple[str, ...]:
    """Return the power modes to try beside the named ones; none where nobody asked for proposals."""
    if not args.propose_modes:
        return ()
    if not args.search:
        raise PowerlabError("--propose-modes adds many power modes, which takes a search; add --search.")
    found = tuple(name for name in proposed_modes(capabilities.modes, max(threads), processors) if name not in named)
    if not found:
        raise PowerlabError(
            "no power mode can be proposed: this device offers neither cores nor clocks to set; `powerlab modes` says "
            "why."
        )
    return found


def _longest_s(level: Level, warm_up_s: float) -> float:
    """Return the maximum warm-up in s: a warm-up below the level's default scales it down as well."""
    return level.longest_warm_up_s * min(1.0, warm_up_s / level.warm_up_s)


def _celsius(option: str, text: str | None) -> float | None:
    try:
        return None if text is None else float(text.strip())
    except ValueError as error:
        raise PowerlabError(f"invalid {option} {text!r}: give a temperature in °C, such as 85.") from error


def _percentage(option: str, text: str) -> float:
    try:
        return float(text.strip().removesuffix("%"))
    except ValueError as error:
        raise PowerlabError(f"invalid {option} {text.strip()!r}: give a percentage, such as 1%.") from error


def processor_of(word: str) -> Processor:
    """Return what computes, of this name.

    Raises:
        PowerlabError: there is no such processor.
    """
    return _member(Processor, word)


def _member(kind: type[_E], word: str) -> _E:
    try:
        return kind(word)
    except ValueError:
        names = [member.value for member in kind]
        raise PowerlabError(
            f"unknown {kind.__name__.lower()} {word!r}{meant(word, names)}; choose from: {', '.join(names)}."
        ) from None


def _modes(text: str, capabilities: Capabilities) -> tuple[str, ...]:
    """Return the named modes; ``all`` is every mode that can be set without a reboot."""
    if text.strip() == ALL_MODES:
        return tuple(mode.name for mode in capabilities.modes if not mode.requires_reboot)
    return _words(text)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _threads(args: argparse.Namespace, processors: tuple[Processor, ...]) -> tuple[int, ...]:
    """Return the thread counts asked for; an empty tuple where none are."""
    threads = counts("--threads", args.threads) if args.threads else ()
    if set(processors) == {Processor.GPU} and threads not in ((), (1,)):
        raise PowerlabError(
            "--threads counts threads of the cores, and a graphics processor has no such choice; leave it out, or add "
            "cpu to --processor."
        )
    return threads


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
        wanted = "an integer" if kind is int else "a number"
        raise PowerlabError(f"invalid {option} value {text.strip()!r}: give {wanted}.") from error
