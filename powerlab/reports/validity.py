"""What the validity rules said of a sweep's runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from powerlab.domain.run import Run, Verdict
from powerlab.reports.text import counted


def verdict_counts(runs: Sequence[Run]) -> str:
    """Return ``27 of 27 runs are valid``, and what the others are."""
    found = Counter(run.verdict for run in runs)
    others = [
        f"{found[verdict]} {verdict.value}" for verdict in Verdict if verdict is not Verdict.VALID and found[verdict]
    ]
    rest = f"; {', '.join(others)}" if others else ""
    return f"{found[Verdict.VALID]} of {counted(len(runs), 'run')} {'is' if len(runs) == 1 else 'are'} valid{rest}."


def none_valid(runs: Sequence[Run]) -> str:
    """Return a sentence to begin with, and a space, where no run is valid; else nothing."""
    if any(run.verdict is Verdict.VALID for run in runs):
        return ""
    return "No run is valid, so no figure here supports a claim. "


def findings(runs: Sequence[Run]) -> tuple[str, ...]:
    """Return one line a rule and verdict, with an example, the most frequent first."""
    counts = Counter((finding.verdict, finding.rule) for run in runs for finding in run.findings)
    examples = {(one.verdict, one.rule): one.detail for run in reversed(runs) for one in run.findings}
    return tuple(
        f"{verdict.value.capitalize()} by {rule}, {counted(count, 'time')}; for example: "
        f"{examples[verdict, rule].rstrip('.')}."
        for (verdict, rule), count in counts.most_common()
    )
