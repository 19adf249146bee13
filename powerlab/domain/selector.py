"""Labels, and the selectors of devices by them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from powerlab.domain.errors import PowerlabError

LONGEST = 63
"""Characters of a label's key and of its value, at most; both follow the syntax of Kubernetes' labels, without prefix.

https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
"""
_WORD = re.compile(rf"[A-Za-z0-9](?:[A-Za-z0-9._-]{{0,{LONGEST - 2}}}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What a lab says of a device: ``key=value``, or a word alone, whose value is empty."""

    key: str
    value: str = ""

    def __str__(self) -> str:
        """Return the label as it is written."""
        return f"{self.key}={self.value}" if self.value else self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Which devices: those of which everything holds that is named; one that names nothing takes every device.

    Attributes:
        board: as ``powerlab boards`` names it; empty takes any.
        labels: labels that a device must have; a key alone takes any value.
        group: the name of a stored selector that must hold too; empty names none.
    """

    board: str = ""
    labels: tuple[str, ...] = ()
    group: str = ""

    def __str__(self) -> str:
        """Return the selector in words."""
        named = (("board", self.board), ("group", self.group), ("label", ", ".join(self.labels)))
        return ", ".join(f"{what} {text}" for what, text in named if text) or "every device"


def check_word(text: str, what: str) -> str:
    """Return a key, a value or a name as it is; raises PowerlabError where it is none."""
    if _WORD.fullmatch(text) is None:
        raise PowerlabError(
            f"{text!r} is not a valid {what}; write 1 to {LONGEST} letters, digits, '-', '_' or '.', beginning and "
            "ending with a letter or digit."
        )
    return text


def parse_label(text: str) -> Label:
    """Return the label that is written ``key=value`` or ``word``; raises PowerlabError where it is none."""
    key, equals, value = text.partition("=")
    check_word(key, "label key")
    return Label(key=key, value=check_word(value, "label value") if equals else "")


def check_selector(selector: Selector) -> None:
    """Raise PowerlabError where a selector holds what is no label."""
    for text in selector.labels:
        parse_label(text)
