"""What a power mode's name says in numbers: cores, clocks, limits; and what it says in words alone.

``cores=4+cpu-max=1190400kHz`` has two numbers, so a model can tell what lies between two such modes. A vendor's name
has none of its own; where the board's description knows its caps, they stand in. What is left (``governor=powersave``)
is a label: of such modes a model knows nothing but that they may differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from powerlab.domain.mode import CURRENT_MODE_NAME

JOINT = "+"
_NUMBER = re.compile(r"(?P<key>[a-z-]+)=(?P<value>[0-9]+(?:\.[0-9]+)?)(?P<unit>[A-Za-z]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """A power mode as a model sees it.

    Attributes:
        numbers: by key (``cores``, ``cpu-max``), in the unit that all names of that key use.
        label: the parts that are no numbers; empty where there are none.
        of_vendor: whether a vendor's mode sets all that it has no cap for; if not, that stays as it is now.
    """

    numbers: Mapping[str, float] = field(default_factory=dict)
    label: str = ""
    of_vendor: bool = False


def traits_of(name: str, vendor: Mapping[str, Mapping[str, float]]) -> Traits:
    """Return what a mode's name says.

    Args:
        name: of the mode.
        vendor: the caps of the vendor's modes by name, as far as the board's description knows them.
    """
    numbers: dict[str, float] = {}
    words: list[str] = []
    of_vendor = False
    for part in (one.strip() for one in name.split(JOINT)):
        match = _NUMBER.fullmatch(part)
        if match is not None and float(match["value"]) > 0:
            numbers[match["key"]] = float(match["value"])
        elif part in vendor:
            numbers, of_vendor = {**vendor[part], **numbers}, True
        elif part != CURRENT_MODE_NAME:
            words.append(part)
    return Traits(numbers=numbers, label=JOINT.join(sorted(words)), of_vendor=of_vendor)
