"""What people and server say to each other about the devices of a lab: their labels and groups."""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.domain.selector import Selector


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
