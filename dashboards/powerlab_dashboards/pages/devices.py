"""The devices: what each can measure and set, and what to do about what it cannot."""

from __future__ import annotations

from fastapi import APIRouter, Response

from powerlab.store import Store, queries
from powerlab_dashboards.render import page


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/devices``."""

    @router.get("/devices")
    def devices() -> Response:
        with store.session() as session:
            records = queries.list_devices(session)
        return page("devices.html", section="devices", devices=records)
