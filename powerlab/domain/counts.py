"""Lists of counts, such as ``1,2,4-8``: of threads, images in a batch, slices."""

from __future__ import annotations

import re

from powerlab.domain.errors import PowerlabError

MOST = 1000
"""Values that a list may have; a sweep of more would take days."""
_PART = re.compile(r"([0-9]{1,9})(?:\s*-\s*([0-9]{1,9}))?")


def counts(option: str, text: str) -> tuple[int, ...]:
    """Return the numbers that a list names, in its order; a range such as ``4-8`` has both of its ends.

    Args:
        option: the option that has the list, for the message.
        text: numbers from 1 on and ranges of them, separated by commas.

    Raises:
        PowerlabError: the list is empty, too long, or a part of it is no count or range.
    """
    found: list[int] = []
    for part in filter(None, map(str.strip, text.split(","))):
        numbers = _range(option, part)
        if len(found) + len(numbers) > MOST:
            raise PowerlabError(f"invalid {option} {part!r}: a list has at most {MOST} values; name fewer.")
        found += numbers
    if not found:
        raise PowerlabError(f"invalid {option} {text!r}: give numbers and ranges, such as 1,2,4-8.")
    return tuple(found)


def _range(option: str, part: str) -> range:
    match = _PART.fullmatch(part)
    if match is None:
        raise PowerlabError(f"invalid {option} value {part!r}: give an integer from 1 on, or a range such as 4-8.")
    first, last = int(match[1]), int(match[2] or match[1])
    if first == 0:
        raise PowerlabError(f"invalid {option} value {part!r}: give at least 1.")
    if last < first:
        raise PowerlabError(f"invalid {option} value {part!r}: a range counts up; write {last}-{first}.")
    return range(first, last + 1)
