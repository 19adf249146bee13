"""Create a campaign: one plan on several devices, all queued or none."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.labs import CampaignRequest, Each
from powerlab.protocol.messages import SweepRequest
from powerlab.protocol.wire import from_document, to_document
from powerlab.store.errors import ConflictError
from powerlab.store.reads.eligible_devices import matching
from powerlab.store.tables import CampaignRow
from powerlab.store.writes.audit import record
from powerlab.store.writes.sweeps import check_key, create_sweep

MOST_SWEEPS = 200
"""Sweeps of one campaign."""


def sweep_requests(session: Session, request: CampaignRequest) -> Sequence[SweepRequest]:
    """Return what a campaign asks for, in the order of the devices' or the boards' names.

    Raises:
        NotFoundError: there is no such group.
        PowerlabError: no device is chosen, or too many.
    """
    found, like = matching(session, request.of), SweepRequest(plan=request.plan, priority=request.priority)
    if request.each is Each.DEVICE:
        requests = [replace(like, device_id=one.id) for one in found]
    else:
        boards = sorted({one.device.board for one in found})
        requests = [replace(like, any_of=replace(request.of, board=board)) for board in boards]
    if len(requests) > MOST_SWEEPS:
        raise PowerlabError(f"these would be {len(requests)} sweeps; ask for at most {MOST_SWEEPS} at a time.")
    return requests


def submit_campaign(
    session: Session, request: CampaignRequest, now: datetime, *, by: str, key: str | None = None
) -> tuple[str, bool]:
    """Queue a sweep for each, once for one submitter's key.

    Returns:
        the campaign's id, and whether it is new.

    Raises:
        ConflictError: the key belongs to a campaign that was asked for in other words.
        NotFoundError, PowerlabError: as :func:`sweep_requests`, or a device cannot carry out the plan.
    """
    check_key(key)
    known = _known(session, request, by, key)
    if known is not None:
        return known, False
    try:
        with session.begin_nested():
            return _create(session, request, now, by, key), True
    except IntegrityError:
        known = _known(session, request, by, key)  # somebody asked for it at the same moment
        if known is None:
            raise
        return known, False


def _create(session: Session, request: CampaignRequest, now: datetime, by: str, key: str | None) -> str:
    campaign = CampaignRow(
        id=str(uuid.uuid4()), request=to_document(request), created_at=now, submitter=by, request_key=key
    )
    session.add(campaign)
    session.flush()
    requests = sweep_requests(session, request)
    for one in requests:
        create_sweep(session, one, now, by=by, campaign_id=campaign.id)
    record(session, now, by, "create campaign", campaign.id, sweeps=len(requests))
    return campaign.id


def _known(session: Session, request: CampaignRequest, by: str, key: str | None) -> str | None:
    if key is None:
        return None
    row = session.scalar(select(CampaignRow).where(CampaignRow.submitter == by, CampaignRow.request_key == key))
    if row is None:
        return None
    if from_document(row.request, CampaignRequest) != request:
        raise ConflictError(
            f"the Idempotency-Key {key!r} belongs to another campaign ({row.id}); use a new key for a different "
            "request."
        )
    return row.id
