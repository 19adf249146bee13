"""A report as one self-contained HTML file: no script, and nothing from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from powerlab.domain.quantity import Metric
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
    Section,
    Verdict,
    Verdicts,
)
from powerlab.reports.figures.palette import PAGE
from powerlab.reports.html_style import STYLE
from powerlab.reports.text import figure_text

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Nothing is fetched, whatever a name in the report says."""
_WITHIN_FIGURES = re.compile(r"(?<=\d) (?=[%±])|(?<=%) (?=±)|(?<=±) (?=\d)")


def html_document(document: Document) -> str:
    """Return the page."""
    anchors = [_anchor(section.title) for section in document.sections]
    contents = "".join(
        f'<li><a href="#{anchor}">{escape(section.title)}</a></li>'
        for anchor, section in zip(anchors, document.sections, strict=True)
    )
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(document.title)}</title><style>{STYLE}</style></head><body>",
        f"<header><h1>{escape(document.title)}</h1><p>{escape(document.lead)}</p>",
        f'<nav aria-label="Contents"><ul>{contents}<li><a href="#cite">Cite</a></li></ul></nav></header><main>',
        *(
            part
            for anchor, section in zip(anchors, document.sections, strict=True)
            for part in _section(anchor, section)
        ),
        f'<section aria-labelledby="cite"><h2 id="cite">Cite</h2>{_code(document.citations)}</section>',
        f"</main><footer><p>{escape(document.footer)}</p></footer></body></html>",
    ]
    return "\n".join(parts) + "\n"


def figure_html(metric: Metric | None) -> str:
    """Return a figure as it stands in a cell."""
    if metric is None:
        return '<span class="none">–</span>'
    return escape(figure_text(metric).plain)


def _section(anchor: str, section: Section) -> Iterator[str]:
    yield f'<section aria-labelledby="{anchor}"><h2 id="{anchor}">{escape(section.title)}</h2>'
    pictures = [block for block in section.blocks if isinstance(block, Picture)]
    for block in section.blocks:
        if not isinstance(block, Picture):
            yield _block(block)
    if pictures:
        yield '<div class="pictures">'
        yield from map(_picture, pictures)
        yield "</div>"
    yield "</section>"


def _block(block: Block) -> str:
    match block:
        case Paragraph(text):
            found = f"<p>{_prose(text)}</p>"
        case Bullets(items):
            found = f"<ul>{''.join(f'<li>{_prose(item)}</li>' for item in items)}</ul>"
        case Facts(pairs):
            rows = (f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs)
            found = f'<dl class="facts">{"".join(rows)}</dl>'
        case Code(text, _):
            found = _code(text)
        case Verdicts(lines):
            found = f'<div class="answers">{"".join(map(_verdict, lines))}</div>'
        case Grid():
            found = _grid(block)
        case Picture():
            found = _picture(block)
    return found


def _prose(text: str) -> str:
    parts = _kept(text).split("`")
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))


def _kept(text: str) -> str:
    """Return text in which no line breaks within a figure: ``45.4 % ± 0.5 %``."""
    return _WITHIN_FIGURES.sub("\N{NO-BREAK SPACE}", escape(text))


def _code(text: str) -> str:
    return f'<pre tabindex="0"><code>{escape(text)}</code></pre>'


def _verdict(one: Verdict) -> str:
    figure, _, provenance = one.figure.rpartition(" (")
    kind = one.decision.replace(" ", "-")
    return (
        f'<article class="answer {escape(kind)}"><h3>Best {escape(one.goal)} '
        f'<span class="badge">{escape(one.decision)}</span></h3>'
        f'<p class="value">{escape(figure)} <small>{escape(provenance.rstrip(")"))}</small></p>'
        f"<p>with {escape(one.point)}</p><p>{_kept(one.statement)}.</p></article>"
    )


def _picture(picture: Picture) -> str:
    return (
        f'<figure><h3>{escape(picture.title)}</h3><div class="drawing" tabindex="0" role="group" '
        f'aria-label="{escape(picture.title)}">{picture.draw(PAGE)}</div>'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
    )


def _grid(grid: Grid) -> str:
    heads = "".join(
        f'<th scope="col"{_number(column.figures)}>{escape(column.title)}'
        f"{f'<small>{escape(column.under)}</small>' if column.under else ''}</th>"
        for column in grid.columns
    )
    numbers = [column.figures for column in grid.columns]
    rows = (
        "".join(f"<td{_number(number)}>{_cell(cell)}</td>" for number, cell in zip(numbers, row, strict=True))
        for row in grid.rows
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<p class="caption" id="table-{grid.name}">{escape(grid.caption)}</p>'
        f'<div class="scroll" tabindex="0" role="region" aria-labelledby="table-{grid.name}">'
        f'<table aria-labelledby="table-{grid.name}"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _cell(cell: Cell) -> str:
    if not isinstance(cell, Figure):
        return escape(cell)
    return f"<strong>{figure_html(cell.metric)}</strong>" if cell.best else figure_html(cell.metric)


def _number(figures: bool) -> str:
    return ' class="num"' if figures else ""


def _anchor(title: str) -> str:
    return "-".join(title.lower().split())
