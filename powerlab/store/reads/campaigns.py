"""Queries of campaigns."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from powerlab.protocol.labs import CampaignRecord, CampaignRequest
from powerlab.protocol.records import SweepRecord
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
    sweeps = list_sweeps(session, SweepFilter(campaign_id=campaign_id))
    return _record(row, tuple(sorted(sweeps, key=lambda one: (one.device_name, one.id))))


def newest_campaigns(session: Session, limit: int = 10) -> Sequence[CampaignRecord]:
    """Return the newest campaigns, without their sweeps."""
    rows = session.scalars(select(CampaignRow).order_by(CampaignRow.created_at.desc(), CampaignRow.id).limit(limit))
    return [_record(row, ()) for row in rows]


def _record(row: CampaignRow, sweeps: tuple[SweepRecord, ...]) -> CampaignRecord:
    request = from_document(row.request, CampaignRequest)
    return CampaignRecord(
        id=row.id,
        each=request.each,
        of=request.of,
        created_at=row.created_at,
        submitter=row.submitter,
        sweeps=sweeps,
    )
