"""Layer profiles: the list, and the time and energy of every layer of one profile."""

from __future__ import annotations

from collections import Counter

from fastapi import APIRouter, Response

from powerlab.analysis.roofline import roofline
from powerlab.domain.layers import LayerProfile
from powerlab.domain.run import Finding
from powerlab.store import Store
from powerlab.store.errors import NotFoundError
from powerlab.store.reads.layers import layer_profile, list_layer_profiles
from powerlab_dashboards.charts.registry import LAYER_CHARTS
from powerlab_dashboards.pages.figures import figure_response, view_of
from powerlab_dashboards.render import not_found, page

LIMIT = 40


def layer_findings(profile: LayerProfile) -> list[tuple[Finding, int]]:
    """Return one example finding per rule and verdict with its number of layers, most frequent first."""
    said = [finding for layer in profile.layers for finding in layer.findings]
    counted = Counter((finding.rule, finding.verdict) for finding in said)
    examples = {(finding.rule, finding.verdict): finding for finding in said}
    return [(examples[key], number) for key, number in counted.most_common()]


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/layers``, ``/layers/{id}`` and the figures of its charts."""

    @router.get("/layers")
    def layers_page() -> Response:
        with store.session() as session:
            profiles = list_layer_profiles(session, limit=LIMIT)
        return page("layers.html", section="layers", profiles=[profile for _, profile in profiles], limit=LIMIT)

    @router.get("/layers/{profile_id}")
    def layer_profile_page(profile_id: str) -> Response:
        try:
            with store.session() as session:
                profile = layer_profile(session, profile_id)
        except NotFoundError as error:
            return not_found(str(error))
        return page(
            "layer_profile.html",
            section="layers",
            profile=profile,
            rows=list(zip(profile.layers, roofline(profile), strict=True)),
            said=layer_findings(profile),
            charts=LAYER_CHARTS.values(),
        )

    @router.get("/layers/{profile_id}/charts/{name}")
    def layer_figure(profile_id: str, name: str, theme: str = "light", narrow: bool = False) -> Response:
        try:
            chart = LAYER_CHARTS[name]
            with store.session() as session:
                profile = layer_profile(session, profile_id)
        except KeyError:
            return not_found(f"There is no chart named {name}; there are {', '.join(LAYER_CHARTS)}.")
        except NotFoundError as error:
            return not_found(str(error))
        return figure_response(chart.build(profile, view_of(theme, narrow=narrow)))
