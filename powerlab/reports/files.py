"""A report as files: one of the format that its ending names, or a folder with all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from powerlab.atomic_file import write_whole
from powerlab.domain.errors import PowerlabError
from powerlab.reports.blocks import Document
from powerlab.reports.chromium import REMEDY, find_chromium, pdf_of, png_of
from powerlab.reports.figures.palette import LIGHT
from powerlab.reports.html import html_document
from powerlab.reports.latex import latex_document
from powerlab.reports.markdown import markdown_document

_FIGURES = "figures"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What became of a report.

    Attributes:
        paths: the files, the most important first.
        left_out: in a sentence, what could not be made and how to mend that; empty where all was.
    """

    paths: tuple[Path, ...]
    left_out: str = ""


def write_report(document: Document, output: Path, label: str) -> Written:
    """Write a report.

    Args:
        document: what it says.
        output: a file whose ending says the format, or a folder for all formats.
        label: the prefix of LaTeX labels.

    Raises:
        PowerlabError: the ending is none of a format, the format cannot be made, or the disk takes no file.
    """
    if output.suffix and not output.is_dir():
        if output.suffix not in _SINGLE:
            known = ", ".join(_SINGLE)
            raise PowerlabError(
                f"no report is written as {output.suffix}; end --output with one of {known}, or name a folder for all."
            )
        return Written(paths=_written(_SINGLE[output.suffix](document, output, label)))
    return _folder(document, output, label)


def check_output(output: Path) -> None:
    """Raise PowerlabError where a report could not be written there, before anything is read or computed."""
    if output.suffix == ".pdf" and not output.is_dir() and find_chromium() is None:
        raise PowerlabError(f"PDF is made by Chromium, which is not installed; {REMEDY}, or write .html and print it.")


_Contents = Mapping[Path, bytes]


def _html(document: Document, output: Path, _label: str) -> _Contents:
    return {output: html_document(document).encode()}


def _markdown(document: Document, output: Path, _label: str) -> _Contents:
    """Return the page, and beside it a picture a file: Markdown has no way to hold one."""
    names = {picture.name: f"{output.stem}-{picture.name}.svg" for picture in document.pictures}
    page = {output: markdown_document(document, names).encode()}
    return page | {output.with_name(names[one.name]): one.draw(LIGHT).encode() for one in document.pictures}


def _latex(document: Document, output: Path, label: str) -> _Contents:
    return {output: latex_document(document, label).encode()}


def _pdf(document: Document, output: Path, _label: str) -> _Contents:
    return {output: pdf_of(html_document(document))}


_SINGLE: dict[str, Callable[[Document, Path, str], _Contents]] = {
    ".html": _html,
    ".md": _markdown,
    ".tex": _latex,
    ".pdf": _pdf,
}
"""What makes a single file, by its ending."""


def _folder(document: Document, folder: Path, label: str) -> Written:
    html = html_document(document)
    names = {picture.name: f"{_FIGURES}/{picture.name}.svg" for picture in document.pictures}
    drawn = {picture.name: picture.draw(LIGHT) for picture in document.pictures}
    contents: dict[Path, bytes] = {
        folder / "report.html": html.encode(),
        folder / "report.md": markdown_document(document, names).encode(),
        folder / "tables.tex": latex_document(document, label).encode(),
        folder / "references.bib": f"{document.citations}\n".encode(),
        **{folder / names[name]: svg.encode() for name, svg in drawn.items()},
    }
    left_out = ""
    if find_chromium() is None:
        left_out = f"No PDF and no PNG figures: Chromium is not installed; {REMEDY}."
    else:
        contents[folder / "report.pdf"] = pdf_of(html)
        contents |= {folder / _FIGURES / f"{name}.png": png_of(svg) for name, svg in drawn.items()}
    return Written(paths=_written(contents), left_out=left_out)


def _written(contents: _Contents) -> tuple[Path, ...]:
    """Write all files, each whole or not at all."""
    for path, content in contents.items():
        try:
            write_whole(path, content)
        except OSError as error:
            raise PowerlabError(
                f"cannot write the report to {path} ({error.strerror}); free some space, or choose another --output."
            ) from error
    return tuple(contents)
