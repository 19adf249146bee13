"""Which power modes of a plan can be set within this boot, and which need a reboot each."""

from __future__ import annotations

from powerlab.domain.mode import Setting
from powerlab.domain.order import Stage
from powerlab.domain.sweep import SweepPlan
from powerlab.modes.controller import ModeController


def stages_of(plan: SweepPlan, controller: ModeController) -> tuple[Stage, ...]:
    """Return what can be set now, then one stage for each reboot; modes that share a reboot share a stage.

    Raises:
        PowerlabError: the device has no such mode.
    """
    now: list[str] = []
    later: dict[Setting, list[str]] = {}
    for name in plan.modes:
        target = controller.reboot_target(name)
        (now if target is None else later.setdefault(target, [])).append(name)
    stages = [Stage(modes=tuple(names), reboot_into=target) for target, names in later.items()]
    return (*([Stage(modes=tuple(now))] if now else []), *stages)
