"""The engines of a plan that this machine has: ``all`` becomes their names, and one that is missing is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

from powerlab.backends.packages import PACKAGES, check_installed, installed_version
from powerlab.domain.errors import PowerlabError
from powerlab.domain.preflight import engines_for
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.domain.workload import Processor
from powerlab.measure.worker.load_check import refusal

ALL_ENGINES = "all"


def with_engines_here(
    plan: SweepPlan,
    refuses: Callable[[Point], str | None],
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr),
) -> SweepPlan:
    """Return the plan with the engines it means, each of them installed.

    Args:
        plan: what the command line says.
        refuses: says why a point's engine cannot run its model; None where it can.
        say: is told in one line which engines ``all`` left out, and why.

    Raises:
        PowerlabError: an engine that is named is not installed, with the command that installs it.
    """
    if ALL_ENGINES not in plan.engines:
        for engine in plan.engines:
            if engine in PACKAGES:
                check_installed(engine, on_card=Processor.GPU in plan.processors)
        return plan
    able = [engine for engine in engines_for(plan) if engine in PACKAGES]
    installed = [engine for engine in able if installed_version(engine) is not None]
    missing = [engine for engine in able if engine not in installed]
    refusing = {engine: reason for engine in installed if (reason := _refusal(plan, engine, refuses)) is not None}
    reasons = [f"{engine} ({reason.rstrip('.')})" for engine, reason in refusing.items()]
    if missing:
        reasons.append(f"{', '.join(missing)} (not installed; `powerlab engine backends` says how to install them)")
    if reasons:
        say(f"powerlab: engines left out: {'; '.join(reasons)}.")
    running = tuple(engine for engine in installed if engine not in refusing)
    if not running and "builtin" not in able:
        raise PowerlabError(f"no engine here computes all of the plan on {' and '.join(plan.processors)}.")
    return replace(plan, engines=running or ("builtin",))


def refuses_here(plan: SweepPlan, sysroot: str) -> Callable[[Point], str | None]:
    """Return a function that asks a worker of this machine."""
    return lambda point: refusal(point, sysroot, plan.seed)


def _refusal(plan: SweepPlan, engine: str, refuses: Callable[[Point], str | None]) -> str | None:
    """Return why an engine cannot run one of the plan's models, at the first batch size, in one of its precisions."""
    tried: dict[tuple[str, str, str], Point] = {}
    for point in replace(plan, engines=(engine,)).points():
        load = point.workload
        tried.setdefault((load.model, load.processor, load.precision), point)
    return next((reason for point in tried.values() if (reason := refuses(point)) is not None), None)
