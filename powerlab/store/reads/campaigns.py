"""Queries of campaigns."""

from __future__ import annotations

from sqlalchemy.orm import Session

from powerlab.protocol.labs import CampaignRecord, CampaignRequest
from powerlab.protocol.wire import from_document
from powerlab.store.errors import NotFoundError
from powerlab.store.reads.filters import SweepFilter
from powerlab.store.reads.queries import list_sweeps
from powerlab.store.tables import CampaignRow


def campaign(session: Session, campaign_id: str) -> CampaignRecord:
    """Return one campaign with its sweeps; raises NotFoundError."""
    row = session.get(CampaignRow, campaign_id)
    if row is None:
        raise NotFoundError(f"there is no campaign {campaign_id!r}; a sweep of one has its id as campaign_id.")
    request = from_document(row.request, CampaignRequest)
    sweeps = list_sweeps(session, SweepFilter(campaign_id=campaign_id))
    return CampaignRecord(
        id=row.id,
        each=request.each,
        of=request.of,
        created_at=row.created_at,
        submitter=row.submitter,
        sweeps=tuple(sorted(sweeps, key=lambda one: (one.device_name, one.id))),
    )
