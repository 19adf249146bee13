"""The models that can be swept, and the graph of one, coloured by what its nodes cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter, Request, Response
from sqlalchemy.orm import Session

from powerlab.domain.layers import LayerProfile
from powerlab.networks.outline import network_names, outline
from powerlab.protocol.model_records import ModelRecord
from powerlab.store import Store
from powerlab.store.reads.layers import newest_profile_of
from powerlab.store.reads.model_runs import model_runs
from powerlab.store.reads.models import list_models, to_model
from powerlab_dashboards.graphs.layout import picture
from powerlab_dashboards.graphs.nodes import SHADES, GraphNode, cost_words, of_outline, of_profile, shade
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark
from powerlab_dashboards.render import not_found, page
from powerlab_dashboards.visitor import visit_of

MODELS_SHOWN = 200
COSTLIEST = 8
"""Nodes that are named above the graph."""
ZOO, UPLOADED, FILE = mark("zoo"), mark("uploaded"), mark("file on a device")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """A row of the list; figures are None where the server does not know them."""

    name: str
    kind: str
    node_count: int | None
    macs: int | None
    byte_count: int | None
    run_count: int
    newest_at: datetime | None


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/models`` and ``/models/{name}``."""

    @router.get("/models")
    def models_page() -> Response:
        with store.session() as session:
            models = listed(session)
        return page("models.html", section="models", models=models[:MODELS_SHOWN], more=len(models) > MODELS_SHOWN)

    @router.get("/models/{name:path}")
    def model_page(request: Request, name: str, view: str = "graph") -> Response:
        with store.session() as session:
            found = next((one for one in listed(session) if one.name == name), None)
            profile = newest_profile_of(session, name)
        if found is None:
            return not_found(_("There is no model named %(name)s.", name=name[:200]))
        nodes = _nodes(name, profile)
        most = max((node.share for node in nodes), default=0.0)
        return page(
            "model.html",
            section="models",
            model=found,
            profile=profile,
            nodes=nodes,
            chained=name not in network_names(),
            picture=picture([node.inputs for node in nodes]),
            shades=[shade(node, most) for node in nodes],
            shade_count=SHADES,
            most_percent=100 * most,
            costs=[cost_words(node, timed=profile is not None) for node in nodes],
            costliest=_costliest(nodes),
            as_table=view == "table",
            may_operate=visit_of(request).may_operate,
        )


def listed(session: Session) -> list[ListedModel]:
    """Return the zoo's models, uploaded ones and others that were measured: those with the newest runs first."""
    runs = {one.model: one for one in model_runs(session)}
    uploaded: dict[str, ModelRecord] = {}
    for row in list_models(session, limit=MODELS_SHOWN):
        record = to_model(row, 0)
        uploaded[record.reference] = record
    found = []
    for name in dict.fromkeys((*network_names(), *uploaded, *runs)):
        nodes = outline(name) if name in network_names() else None
        found.append(
            ListedModel(
                name=name,
                kind=ZOO if nodes is not None else UPLOADED if name in uploaded else FILE,
                node_count=None if nodes is None else len(nodes),
                macs=None if nodes is None else sum(node.macs for node in nodes),
                byte_count=uploaded[name].byte_count if name in uploaded else None,
                run_count=runs[name].run_count if name in runs else 0,
                newest_at=runs[name].newest_at if name in runs else None,
            )
        )
    return sorted(found, key=lambda one: -one.newest_at.timestamp() if one.newest_at else 0.0)


def _nodes(name: str, profile: LayerProfile | None) -> list[GraphNode]:
    if name in network_names():
        return of_outline(outline(name), profile)
    return [] if profile is None else of_profile(profile)


def _costliest(nodes: Sequence[GraphNode]) -> list[tuple[int, GraphNode]]:
    """Return the costliest nodes with their places, the costliest first."""
    ordered = sorted(enumerate(nodes), key=lambda one: -one[1].share)
    return [one for one in ordered[:COSTLIEST] if one[1].share > 0]
