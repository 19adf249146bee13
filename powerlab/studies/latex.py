"""A study's table in LaTeX, for a paper: booktabs, nothing that needs another package."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from powerlab.analysis.dimensions import varying
from powerlab.analysis.matches import Match
from powerlab.analysis.wording import ratio_words, verdict_words
from powerlab.domain.quantity import METRICS
from powerlab.reports.latex import comment, escape, figure, line
from powerlab.studies.study import Study
from powerlab.studies.table import Row, column_title

_WORDS = r"p{.12\linewidth}p{.1\linewidth}p{.18\linewidth}"
_LAST_WORDS = r"p{.14\linewidth}p{.1\linewidth}"
"""Columns of words are broken into lines, so that the table keeps to the page."""


def latex_document(study: Study, rows: Sequence[Row], matches: Sequence[Match]) -> str:
    """Return a file to include: the table, and one of our own points compared where the study compares them."""
    parts = [
        f"% {comment(study.title)}",
        f"% Published figures: {comment(study.source)}",
        "% Needs \\usepackage{booktabs}. Figures of different provenance stand side by side and are never mixed.",
        _table(study, rows),
    ]
    if matches:
        parts.append(_ratios(study, matches))
    return "\n".join(parts) + "\n"


def _table(study: Study, rows: Sequence[Row]) -> str:
    titles = [escape(column_title(name, study)) for name in study.metrics]
    heads = ["System", "Software", "Conditions", *titles, "Power covers", "Provenance"]
    lines = [
        r"\begin{table*}",
        r"\centering\footnotesize",
        rf"\caption{{{escape(study.title)}. $\pm$ is the 95\,\% interval. Published: {escape(study.source)}.}}",
        rf"\label{{tab:{study.name}}}",
        rf"\begin{{tabular}}{{{_WORDS}{'r' * len(titles)}{_LAST_WORDS}}}",
        r"\toprule",
        line(heads),
    ]
    for case, found in groupby(rows, key=lambda row: row.case):
        lines += [r"\midrule", rf"\multicolumn{{{len(heads)}}}{{l}}{{\textit{{{escape(case)}}}}} \\"]
        for row in found:
            words = [escape(word) for word in (row.system, row.software, row.conditions)]
            figures = [figure(metric) for metric in row.figures]
            lines.append(line([*words, *figures, escape(row.covers), escape(row.provenance)]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table*}"])


def _ratios(study: Study, matches: Sequence[Match]) -> str:
    name_of = varying(side.point for match in matches for side in (match.one, match.other))
    caption = f"Our own points compared by {study.compared}"
    lines = [
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{escape(caption)}: the ratio of the first to the second with its 95\,\% interval.}}",
        rf"\label{{tab:{study.name}-ratios}}",
        r"\begin{tabular}{llllll}",
        r"\toprule",
        line(["Figure", "First", "Second", "Ratio", "The first is", "Provenance"]),
        r"\midrule",
    ]
    for match in matches:
        ratio = match.ratio
        said = (
            (match.reason, "", "")
            if ratio is None
            else (ratio_words(ratio), verdict_words(ratio, claimed=match.claimed), ratio.provenance.value)
        )
        words = (METRICS[match.metric].title, name_of(match.one.point), name_of(match.other.point), *said)
        lines.append(line([escape(word) for word in words]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table*}"])
