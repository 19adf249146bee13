"""A report's tables in LaTeX, for a paper: booktabs, nothing that needs another package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from powerlab.domain.quantity import Metric
from powerlab.reports.blocks import Cell, Document, Figure, Grid, Paragraph
from powerlab.reports.text import figure_text

_ESCAPED = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "°": r"$^\circ$",
    "µ": r"$\mu$",
    "μ": r"$\mu$",
    "≤": r"$\leq$",
    "−": "$-$",
    "–": "--",
    "\n": " ",
}
_ABSENT = "--"


def latex_document(document: Document, label: str) -> str:
    """Return a file to include: the method as a paragraph, every table, and the BibTeX entries as comments.

    Args:
        document: the report.
        label: the prefix of the tables' labels.
    """
    tables = [block for section in document.sections for block in section.blocks if isinstance(block, Grid)]
    parts = [
        f"% {comment(document.title)}: {comment(document.lead)}",
        f"% {comment(document.footer)}",
        "% Needs \\usepackage{booktabs}. Figures of different provenance stand side by side and are never mixed.",
        "",
        *_paragraphs(document),
        *(_table(table, label) + "\n" for table in tables),
        "% Citation:",
        *(f"% {line}".rstrip() for line in document.citations.splitlines()),
    ]
    return "\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Return text as LaTeX prints it."""
    return "".join(_ESCAPED.get(character, character) for character in text)


def figure(metric: Metric | None) -> str:
    """Return a figure as it stands in a cell."""
    if metric is None:
        return _ABSENT
    text = figure_text(metric)
    if not text.up:
        return f"${text.value}$"
    if text.up == text.down:
        return rf"${text.value} \pm {text.up}$"
    return f"${text.value}^{{+{text.up}}}_{{-{text.down}}}$"


def line(cells: Sequence[str]) -> str:
    """Return a row of a table."""
    return " & ".join(cells) + r" \\"


def comment(text: str) -> str:
    """Return text in one line."""
    return " ".join(text.split())


def _paragraphs(document: Document) -> Iterator[str]:
    """Yield the paragraphs of the method, which belong into a paper."""
    for section in document.sections:
        if section.for_papers:
            yield rf"\paragraph{{{escape(section.title)}}}"
            yield from (f"{_prose(block.text)}\n" for block in section.blocks if isinstance(block, Paragraph))


def _prose(text: str) -> str:
    """Return escaped text with its `code` in a typewriter's face."""
    parts = text.split("`")
    return "".join(rf"\texttt{{{escape(part)}}}" if index % 2 else escape(part) for index, part in enumerate(parts))


def _table(grid: Grid, label: str) -> str:
    lines = [
        r"\begin{table*}",
        r"\centering\footnotesize",
        rf"\caption{{{escape(grid.caption)}}}",
        rf"\label{{tab:{label}-{grid.name}}}",
        rf"\begin{{tabular}}{{{''.join('r' if column.figures else 'l' for column in grid.columns)}}}",
        r"\toprule",
        line([escape(column.title) for column in grid.columns]),
    ]
    if any(column.under for column in grid.columns):
        lines.append(line([escape(column.under) for column in grid.columns]))
    rows = [line([_cell(cell) for cell in row]) for row in grid.rows]
    return "\n".join([*lines, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}", r"\end{table*}"])


def _cell(cell: Cell) -> str:
    if not isinstance(cell, Figure):
        return escape(cell)
    return rf"\boldmath{figure(cell.metric)}" if cell.best else figure(cell.metric)
