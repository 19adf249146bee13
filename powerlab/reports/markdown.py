"""A report in Markdown, with its pictures as files beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from powerlab.reports.blocks import (
    Block,
    Bullets,
    Cell,
    Code,
    Document,
    Facts,
    Figure,
    Grid,
    Paragraph,
    Picture,
    Verdicts,
)
from powerlab.reports.text import figure_text

_SPECIAL = re.compile(r"([\\*_\[\]<>|#])")


def markdown_document(document: Document, pictures: Mapping[str, str]) -> str:
    """Return the page.

    Args:
        document: the report.
        pictures: where each picture lies, by its name, as seen from the page.
    """
    parts = [f"# {escape(document.title)}", escape(document.lead)]
    for section in document.sections:
        parts.append(f"## {escape(section.title)}")
        for block in section.blocks:
            parts += _block(block, pictures)
    parts += ["## Cite", f"```bibtex\n{document.citations}\n```", f"---\n\n{escape(document.footer)}"]
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Return text as Markdown shows it, in one line; `code` stays code."""
    parts = " ".join(text.split()).split("`")
    return "`".join(part if index % 2 else _SPECIAL.sub(r"\\\1", part) for index, part in enumerate(parts))


def _block(block: Block, pictures: Mapping[str, str]) -> Iterator[str]:
    match block:
        case Paragraph(text):
            yield escape(text)
        case Bullets(items):
            yield "\n".join(f"- {escape(item)}" for item in items)
        case Facts(pairs):
            yield _table(["", ""], [False, False], [[escape(name), escape(value)] for name, value in pairs])
        case Code(text, language):
            yield f"```{language}\n{'$ ' if language == 'console' else ''}{text}\n```"
        case Verdicts(lines):
            yield "\n".join(f"- {escape(one.sentence)}" for one in lines)
        case Grid():
            yield _grid(block)
        case Picture():
            yield f"![{escape(block.alt)}]({pictures[block.name]})"
            yield f"*{escape(block.title)}.* {escape(block.caption)}"


def _grid(grid: Grid) -> str:
    heads = [f"{column.title}<br>{column.under}" if column.under else column.title for column in grid.columns]
    rows = [[_cell(cell) for cell in row] for row in grid.rows]
    table = _table(heads, [column.figures for column in grid.columns], rows)
    return f"{table}\n\n{escape(grid.caption)}"


def _table(heads: Sequence[str], numbers: Sequence[bool], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---:" if number else "---" for number in numbers], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(cell: Cell) -> str:
    if not isinstance(cell, Figure):
        return escape(cell)
    if cell.metric is None:
        return "–"
    text = figure_text(cell.metric).plain
    return f"**{text}**" if cell.best else text
