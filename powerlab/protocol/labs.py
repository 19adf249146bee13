"""Messages about labels, groups, and campaigns over them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from powerlab.domain.selector import Selector
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.records import SweepRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelValue:
    """The value of a label; empty for a word that stands alone."""

    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A named selector: the devices that it chooses are those that it chooses at the time of asking."""

    name: str
    selector: Selector


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPage:
    """Some groups, in the order of their names; ``next_cursor`` asks for those after them, None at the end."""

    items: tuple[Group, ...]
    next_cursor: str | None = None


class Each(StrEnum):
    """Of what a campaign has one sweep each."""

    BOARD = "board"
    DEVICE = "device"


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRequest:
    """Asks for a sweep of one plan on each of several devices.

    Attributes:
        each: one sweep for each device, or one for each kind of board, which the first free device of it takes.
        of: the devices.
        plan: what every sweep runs.
        priority: of every sweep.
    """

    each: Each
    of: Selector
    plan: SweepPlan
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRecord:
    """Sweeps of one plan on several devices, which were asked for together; they come in the order of their names."""

    id: str
    each: Each
    of: Selector
    created_at: datetime
    submitter: str
    sweeps: tuple[SweepRecord, ...]
