"""Light or dark: as the visitor chose at the foot of a page, else as their system is."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar

from powerlab_dashboards.language import mark

SYSTEM = "system"
THEMES: Mapping[str, str] = {SYSTEM: mark("As the system"), "light": mark("Light"), "dark": mark("Dark")}
"""By the word in ``<html data-theme>``: what the switch says."""
COOKIE = "powerlab_theme"

theme: ContextVar[str] = ContextVar("theme", default=SYSTEM)
"""The theme of the page that is being made: a key of :data:`THEMES`."""


def chosen(cookie: str | None) -> str:
    """Return the theme that a visitor chose, as the cookie :data:`COOKIE` has it."""
    return cookie if cookie is not None and cookie in THEMES else SYSTEM
