"""Findings for people: one cause that several rails share is said once, with its rails."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from powerlab.domain.run import Finding, Verdict

_RAIL = re.compile(r"\b[a-z][a-z0-9_-]*:[^\s,;:]+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What a rule said, once.

    Attributes:
        rule: the rule's name.
        verdict: what follows from it.
        detail: its first sentence.
        likewise: other rails of which it said the same, or the same with other numbers.
        count: how many findings it stands for.
    """

    rule: str
    verdict: Verdict
    detail: str
    likewise: tuple[str, ...]
    count: int


def causes(findings: Iterable[Finding]) -> tuple[Cause, ...]:
    """Return findings with those that differ only in the rail and in numbers put together, in their order."""
    alike: dict[tuple[str, Verdict, str], list[Finding]] = {}
    for finding in findings:
        shape = _NUMBER.sub("#", _RAIL.sub("~", finding.detail))
        alike.setdefault((finding.rule, finding.verdict, shape), []).append(finding)
    return tuple(_cause(found) for found in alike.values())


def _cause(found: list[Finding]) -> Cause:
    first = found[0]
    own = set(_RAIL.findall(first.detail))
    rails = dict.fromkeys(rail for finding in found for rail in _RAIL.findall(finding.detail) if rail not in own)
    return Cause(rule=first.rule, verdict=first.verdict, detail=first.detail, likewise=tuple(rails), count=len(found))
