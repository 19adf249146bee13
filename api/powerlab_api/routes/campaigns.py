"""Campaigns: one plan on each of several devices."""

from __future__ import annotations

from fastapi import APIRouter, Response, status

from powerlab.protocol.labs import CampaignRecord
from powerlab.protocol.records import SweepPreview
from powerlab.store.reads.campaigns import campaign
from powerlab.store.reads.previews import preview
from powerlab.store.writes.campaigns import submit_campaign, sweep_requests
from powerlab_api.dependencies import ReadSession, StoreDep
from powerlab_api.examples import CampaignBody
from powerlab_api.roles import Requires, Submitter
from powerlab_api.routes.sweeps import IdempotencyKey

router = APIRouter(prefix="/campaigns", tags=["sweeps"])


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    dependencies=[Requires.operator],
    responses={200: {"description": "there already, under this Idempotency-Key", "model": CampaignRecord}},
)
def post_campaign(
    store: StoreDep,
    submitter: Submitter,
    request: CampaignBody,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> CampaignRecord:
    """Queue a plan for each of several devices, or for one of each board, if all of them can carry it out."""
    with store.write() as session:
        campaign_id, created = submit_campaign(session, request, store.clock(), by=submitter, key=idempotency_key)
        session.flush()
        response.status_code = status.HTTP_201_CREATED if created else status.HTTP_200_OK
        response.headers["Location"] = f"/api/v1/campaigns/{campaign_id}"
        return campaign(session, campaign_id)


@router.post("/preview", dependencies=[Requires.viewer])
def preview_campaign(store: StoreDep, session: ReadSession, request: CampaignBody) -> tuple[SweepPreview, ...]:
    """Say what each sweep of a campaign would be; nothing is stored."""
    return tuple(preview(session, one, store.clock()) for one in sweep_requests(session, request))


@router.get("/{campaign_id}", dependencies=[Requires.viewer])
def read_campaign(session: ReadSession, campaign_id: str) -> CampaignRecord:
    """Return one campaign with its sweeps."""
    return campaign(session, campaign_id)
