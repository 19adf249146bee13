"""What a report is made of, whatever format it is written in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from powerlab.domain.quantity import Metric
from powerlab.reports.figures.palette import Palette


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure in a cell.

    Attributes:
        metric: the figure; None where there is none.
        best: whether it is the best of its column.
    """

    metric: Metric | None
    best: bool = False


Cell = str | Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table.

    Attributes:
        title: its heading.
        under: what stands below the heading: unit and provenance.
        figures: whether it holds numbers.
    """

    title: str
    under: str = ""
    figures: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table.

    Attributes:
        name: for labels and anchors: lower-case words with dashes.
        caption: what it shows, in a sentence or two.
        columns: its columns.
        rows: as many cells a row as there are columns.
    """

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One line of the answer.

    Attributes:
        goal: what the point is best at.
        figure: its figure with unit and provenance, in words.
        point: the point in words.
        decision: ``winner``, ``tied`` and so on.
        statement: the decision in a sentence.
    """

    goal: str
    figure: str
    point: str
    decision: str
    statement: str

    @property
    def sentence(self) -> str:
        """All of it in one sentence."""
        return f"Best {self.goal}: {self.figure} with {self.point}; {self.statement}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A figure to look at.

    Attributes:
        name: of its file, without ending.
        title: what it shows.
        caption: how to read it.
        alt: what it shows in words, for those who do not see it.
        draw: makes the SVG in given colours.
    """

    name: str
    title: str
    caption: str
    alt: str
    draw: Callable[[Palette], str]

    def renamed(self, name: str) -> Picture:
        """Return the same under another name."""
        return replace(self, name=name)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with what is known of them."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Text to copy: a command, a BibTeX entry."""

    text: str
    language: str


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The answer."""

    lines: tuple[Verdict, ...]


Block = Paragraph | Bullets | Facts | Code | Verdicts | Grid | Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part under a heading.

    Attributes:
        title: the heading.
        blocks: what is in it.
        for_papers: whether its paragraphs belong into a paper.
    """

    title: str
    blocks: tuple[Block, ...]
    for_papers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A report.

    Attributes:
        title: its title.
        lead: what was measured, in a sentence.
        sections: its parts.
        citations: BibTeX entries.
        footer: where it comes from, in a sentence.
    """

    title: str
    lead: str
    sections: tuple[Section, ...]
    citations: str
    footer: str

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """Its pictures, in order."""
        return tuple(block for section in self.sections for block in section.blocks if isinstance(block, Picture))
