"""A study as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby

from powerlab.analysis.dimensions import varying
from powerlab.analysis.matches import Match
from powerlab.analysis.wording import ratio_words, verdict_words
from powerlab.domain.quantity import METRICS
from powerlab.reports.html import figure_html
from powerlab.studies.study import NotRepeated, Study
from powerlab.studies.table import Row, column_title

_STYLE = """\
:root { color-scheme: light dark; --line: #8886; --quiet: #767676; --published: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .92rem; }
th, td { text-align: left; padding: .3rem .7rem; vertical-align: top; border-bottom: 1px solid var(--line); }
td.num, th.num { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
tr.case th { padding-top: 1rem; font-style: italic; } tr.published { background: var(--published); }
.note, .none { color: var(--quiet); } dt { font-weight: 600; } dd { margin: 0 0 .6rem 0; }
"""


def html_document(
    study: Study, rows: Sequence[Row], matches: Sequence[Match], not_repeated: Sequence[NotRepeated]
) -> str:
    """Return the page: what was asked, the table, our own points compared, and what was not repeated."""
    beside = "Published and own figures stand side by side and are never put into one. " if study.publishes else ""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(study.title)}</title><style>{_STYLE}</style></head><body><main>",
        f"<h1>{escape(study.title)}</h1><p>{escape(study.asks)}</p>",
        f'<p class="note">Published figures: {escape(study.source)}. {beside}± is the 95 % interval.</p>',
        *_table(study, rows),
        *(_ratios(study, matches) if matches else ()),
        *_list(not_repeated),
        "</main></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _table(study: Study, rows: Sequence[Row]) -> Iterable[str]:
    titles = [f'<th scope="col" class="num">{escape(column_title(name, study))}</th>' for name in study.metrics]
    words = [f'<th scope="col">{title}</th>' for title in ("System", "Software", "Conditions")]
    ends = [f'<th scope="col">{title}</th>' for title in ("Power covers", "Provenance")]
    yield '<h2 id="table">The table</h2><div class="scroll" tabindex="0" role="region" aria-labelledby="table"><table>'
    yield f"<thead><tr>{''.join([*words, *titles, *ends])}</tr></thead><tbody>"
    for case, found in groupby(rows, key=lambda row: row.case):
        yield f'<tr class="case"><th scope="rowgroup" colspan="{len(words + titles + ends)}">{escape(case)}</th></tr>'
        for row in found:
            cells = [f"<td>{escape(word)}</td>" for word in (row.system, row.software, row.conditions)]
            cells += [f'<td class="num">{figure_html(metric)}</td>' for metric in row.figures]
            cells += [f"<td>{escape(word)}</td>" for word in (row.covers, row.provenance)]
            yield f'<tr class="{"ours" if row.sweep_id else "published"}">{"".join(cells)}</tr>'
    yield "</tbody></table></div>"


def _ratios(study: Study, matches: Sequence[Match]) -> Iterable[str]:
    name_of = varying(side.point for match in matches for side in (match.one, match.other))
    titles = ("Figure", "First", "Second", "Ratio, 95 % interval", "The first is", "Provenance")
    yield f'<h2 id="ratios">Our own points compared by {escape(study.compared)}</h2>'
    yield '<div class="scroll" tabindex="0" role="region" aria-labelledby="ratios"><table>'
    heads = [f'<th scope="col">{title}</th>' for title in titles]
    yield f"<thead><tr>{''.join(heads)}</tr></thead><tbody>"
    for match in matches:
        ratio = match.ratio
        said = (
            (match.reason, "", "")
            if ratio is None
            else (ratio_words(ratio), verdict_words(ratio, claimed=match.claimed), ratio.provenance.value)
        )
        words = (METRICS[match.metric].title, name_of(match.one.point), name_of(match.other.point), *said)
        cells = [f"<td>{escape(word)}</td>" for word in words]
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def _list(not_repeated: Sequence[NotRepeated]) -> Iterable[str]:
    yield "<h2>What is not repeated</h2><dl>"
    for one in not_repeated:
        yield f"<dt>{escape(one.what)}</dt><dd>{escape(one.why)}</dd>"
    yield "</dl>"
