"""The languages of the pages: which one a visitor reads, and the words of each.

The words in templates, charts and scripts are English. ``locale/zh_CN.po`` has them in Chinese; ``make messages``
brings it up to date. A word that the catalogue lacks is shown in English, and a test fails.

::

    from powerlab_dashboards.language import gettext as _

    _("No page at %(path)s.", path=path)   # said now, in the visitor's language
    title=mark("Roofline")                 # said later, by {{ _(chart.title) }}
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Mapping
from contextvars import ContextVar
from gettext import GNUTranslations, NullTranslations
from pathlib import Path

LANGUAGES: Mapping[str, str] = {"en": "English", "zh-CN": "中文"}
"""By the tag in ``<html lang>``: what each language calls itself."""
ENGLISH = "en"
COOKIE = "powerlab_language"
FOLDER = Path(__file__).parent / "locale"
_PREFERENCE = re.compile(r"\s*([A-Za-z-]+|\*)\s*(?:;\s*q=([01](?:\.\d{0,3})?))?\s*")

language: ContextVar[str] = ContextVar("language", default=ENGLISH)
"""The language of the page that is being made: a key of :data:`LANGUAGES`."""


def chosen(cookie: str | None, accept_language: str) -> str:
    """Return the language of a visitor: the one they chose, else the first that their browser asks for, else English.

    Args:
        cookie: the value of the cookie :data:`COOKIE`.
        accept_language: the header of that name (RFC 9110, 12.5.4).
    """
    if cookie in LANGUAGES:
        return str(cookie)
    asked = [match for part in accept_language.split(",") if (match := _PREFERENCE.fullmatch(part))]
    for tag, weight in sorted(((one[1].lower(), float(one[2] or 1)) for one in asked), key=lambda one: -one[1]):
        found = next((known for known in LANGUAGES if tag.split("-")[0] == known.split("-")[0]), None)
        if weight > 0 and found is not None:
            return found
    return ENGLISH


def gettext(message: str, **values: object) -> str:
    """Return a message in the visitor's language, with ``values`` in the places of its ``%(name)s``."""
    said = _words(language.get()).gettext(message)
    return said % values if values else said


def ngettext(singular: str, plural: str, number: int, **values: object) -> str:
    """Return a message that depends on a number, as :func:`gettext` does."""
    said = _words(language.get()).ngettext(singular, plural, number)
    return said % values if values else said


def mark(message: str) -> str:
    """Return a message unchanged: it is in the catalogue, and translated where it is shown."""
    return message


def mark_plural(singular: str, plural: str) -> tuple[str, str]:
    """Return both forms of a message unchanged, as :func:`mark` does."""
    return singular, plural


def script_words() -> dict[str, str]:
    """Return the messages of the pages' scripts in the visitor's language; empty in English."""
    return _script_words(language.get())


@functools.cache
def _words(tag: str) -> NullTranslations:
    if tag == ENGLISH:
        return NullTranslations()
    from babel.messages.mofile import write_mo  # a notebook's charts are in English and need no Babel
    from babel.messages.pofile import read_po

    compiled = io.BytesIO()
    with _file(tag).open("rb") as file:
        write_mo(compiled, read_po(file))
    compiled.seek(0)
    return GNUTranslations(compiled)


@functools.cache
def _script_words(tag: str) -> dict[str, str]:
    if tag == ENGLISH:
        return {}
    from babel.messages.pofile import read_po

    with _file(tag).open("rb") as file:
        messages = [one for one in read_po(file) if any(path.endswith(".js") for path, _ in one.locations)]
    return {str(one.id): str(one.string) for one in messages if one.string}


def _file(tag: str) -> Path:
    return FOLDER / f"{tag.replace('-', '_')}.po"
