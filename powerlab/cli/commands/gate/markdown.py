"""A gate's report as Markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from powerlab.analysis.gate.gate import GateReport, GateVerdict
from powerlab.analysis.trends.versions import Difference
from powerlab.cli.commands.gate.words import HEADINGS, cells, headline, remarks

_MARKS = {GateVerdict.PASS: "✅", GateVerdict.LOSS: "❌", GateVerdict.OPEN: "❔"}
_ALIGNED = ("---", "---", "---:", "---:", "---:", "---")


def markdown(report: GateReport, changed: Sequence[Difference], title: str) -> str:
    """Return the report: the verdict, a table, and what there is to say, in GitHub's flavour."""
    return "".join(f"{line}\n" for line in _lines(report, changed, title))


def _lines(report: GateReport, changed: Sequence[Difference], title: str) -> Iterator[str]:
    yield f"### {_MARKS[report.verdict]} powerlab gate"
    yield ""
    yield _escaped(headline(report, title))
    yield ""
    yield _row(HEADINGS)
    yield _row(_ALIGNED)
    for words in cells(report):
        yield _row([*map(_escaped, words[:-1]), f"{_MARKS[_verdict(words[-1])]} {_escaped(words[-1])}"])
    yield ""
    for sentence in remarks(report, changed):
        yield f"- {_escaped(sentence)}"


def _verdict(word: str) -> GateVerdict:
    return GateVerdict(word.partition(":")[0])


def _row(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"


def _escaped(text: str) -> str:
    """Return text that stands in a cell as it is: names of models and devices are anybody's."""
    kept = text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
    return kept.replace("<", "&lt;").replace("@", "@&#8203;")
