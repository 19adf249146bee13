"""Render templates as responses with the headers common to all pages."""

from __future__ import annotations

import functools
import shlex
from typing import Any

from fastapi import Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from powerlab.analysis.findings import causes
from powerlab_dashboards import format as form
from powerlab_dashboards import times
from powerlab_dashboards.assets import plotly_name
from powerlab_dashboards.language import ENGLISH, LANGUAGES, gettext, language, ngettext, script_words
from powerlab_dashboards.sparkline import sparkline
from powerlab_dashboards.theme import THEMES, theme
from powerlab_dashboards.visitor import address, administers, visitor

# Plotly sets style attributes on what it draws, which only 'unsafe-inline' allows; scripts stay strict.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-cache",
    "vary": "accept-language, cookie",
}


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("powerlab_dashboards"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    environment.policies["ext.i18n.trimmed"] = True
    environment.globals |= {"_": gettext, "gettext": gettext, "ngettext": ngettext, "script_words": script_words}
    environment.filters |= {
        "shown": form.shown,
        "moment": form.moment,
        "clock": form.clock,
        "model_label": form.model_label,
        "count": form.count,
        "significant": form.significant,
        "uniform_provenance": form.uniform_provenance,
        "when": times.when,
        "span": times.span,
        "sparkline": sparkline,
        "english": english,
        "shell": shlex.quote,
        "causes": causes,
    }
    return environment


def page(template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
    """Return a page; every value in ``context`` is escaped where the template prints it."""
    html = (
        _environment()
        .get_template(template)
        .render(
            plotly_name=plotly_name(),
            visitor=visitor.get(),
            administers=administers.get(),
            language=language.get(),
            languages=LANGUAGES,
            theme=theme.get(),
            themes=THEMES,
            address=address.get(),
            **context,
        )
    )
    return HTMLResponse(html, status_code=status, headers=HEADERS | {"content-language": language.get()})


def english(sentence: object) -> Markup:
    """Return a sentence that there is in English only, marked as such on a page in another language."""
    if language.get() == ENGLISH:
        return Markup("{}").format(sentence)
    return Markup('<span lang="en">{}</span>').format(sentence)


def not_found(sentence: str) -> Response:
    """Return the 404 page; ``sentence`` says what was not found."""
    return page("not_found.html", status=404, section="", sentence=sentence)
