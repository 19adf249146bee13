"""What somebody entered into the form for a new sweep: a plan, or what is wrong and beside which field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from powerlab.domain.errors import PowerlabError
from powerlab.domain.preflight import complaints
from powerlab.domain.rigour import LEVELS, Rigour
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.records import DeviceRecord
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.pages.sweep_fields import FIELDS, Field, Offer, nothing_chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """A filled form.

    Attributes:
        values: what stands in each field.
        plan: what is asked for; None where a field cannot be read.
        problems: by field, what is wrong there, a sentence each; under "" what belongs to no field.
    """

    values: Mapping[str, Sequence[str]]
    plan: SweepPlan | None
    problems: Mapping[str, str]


def entered(given: Mapping[str, list[str]], offer: Offer) -> Entered:
    """Return what was entered; a field that is not in ``given`` has its default, as in an empty form.

    Once any field was sent, one without a value is empty: browsers leave out fields whose boxes are not ticked.
    """
    sent = any(field.name in given for field in FIELDS)
    values = {field.name: given.get(field.name, _unsent(field, offer, sent=sent)) for field in FIELDS}
    read: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for field in FIELDS:
        try:
            read[field.name] = _read(field, list(values[field.name]), offer)
        except PowerlabError as error:
            problems[field.name] = str(error)
    if problems:
        return Entered(values=values, plan=None, problems=problems)
    plan = replace(_plan(read), nodes=len(offer.devices) if offer.together else 1)
    return Entered(values=values, plan=plan, problems=refused(plan, offer.devices))


def _unsent(field: Field, offer: Offer, *, sent: bool) -> Sequence[str]:
    if not sent or not field.several:  # a list to choose one from always sends it: this address is an older one
        return field.default(offer)
    return [] if field.choices else [""]


def _read(field: Field, values: list[str], offer: Offer) -> object:
    if field.choices is not None:
        unknown = [one for one in values if one not in field.choices(offer)]
        if unknown:
            raise PowerlabError(_("%(value)s cannot be chosen here.", value=unknown[0][:100]))
        if not values:
            raise PowerlabError(nothing_chosen(field))
    return field.parse(values)


def _plan(read: Mapping[str, Any]) -> SweepPlan:
    """Return the plan, with the times of its rigour."""
    level = LEVELS[Rigour(read["rigour"])]
    return SweepPlan(
        **read,
        duration_s=level.duration_s,
        min_inferences=level.min_inferences,
        warm_up_s=level.warm_up_s,
        longest_warm_up_s=level.longest_warm_up_s,
        idle_s=level.idle_s,
        cool_down_s=level.cool_down_s,
    )


def refused(plan: SweepPlan, devices: Sequence[DeviceRecord]) -> dict[str, str]:
    """Return what the devices refuse in a plan, by the field without which they would not."""
    problems: dict[str, str] = {}
    for device in devices:
        for sentence in _complaints(plan, device):
            problems.setdefault(_culprit(sentence, plan, device), sentence)
    return problems


def _complaints(plan: SweepPlan, record: DeviceRecord) -> tuple[str, ...]:
    return complaints(plan, record.device, record.capabilities, invented_pass=True)


def _culprit(sentence: str, plan: SweepPlan, device: DeviceRecord) -> str:
    for field in FIELDS:
        if sentence not in _complaints(replace(plan, **{field.name: field.harmless}), device):
            return field.name
    return ""
