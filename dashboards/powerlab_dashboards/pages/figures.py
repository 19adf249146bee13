"""Figures as JSON responses, for Plotly on the page or in a notebook."""

from __future__ import annotations

import json

from fastapi import Response

from powerlab_dashboards.charts.base import Figure, NoChart
from powerlab_dashboards.charts.choice import Choice
from powerlab_dashboards.charts.theme import LIGHT, THEMES, View
from powerlab_dashboards.render import HEADERS


def view_of(theme: str, *, narrow: bool, choice: Choice | None = None) -> View:
    """Return the requested view; an unknown theme falls back to light."""
    return View(theme=THEMES.get(theme, LIGHT), narrow=narrow, choice=choice or Choice())


def figure_response(figure: Figure | NoChart) -> Response:
    """Return a figure, or ``{"reason": ...}`` if there is nothing to draw."""
    content = {"reason": figure.reason} if isinstance(figure, NoChart) else figure
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return Response(text, media_type="application/json", headers=HEADERS)
