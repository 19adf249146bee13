"""Labels, groups, campaigns and bookings of a server's devices."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from powerlab.client.transport import Transport
from powerlab.domain.selector import Label, Selector
from powerlab.protocol.bookings import BookingKind, BookingPage, BookingRecord, BookingRequest
from powerlab.protocol.labs import CampaignRecord, CampaignRequest, Group, GroupPage, LabelValue
from powerlab.protocol.records import DeviceRecord, SweepPreview

PAGE = 500
"""Items asked for at a time."""


@dataclass(frozen=True, slots=True)
class Labs:
    """Asks one server, through ``Client(...).transport``; every method raises what :class:`Client`'s raise."""

    transport: Transport

    def label(self, device_id: str, label: Label) -> DeviceRecord:
        """Give a device a label, in place of one with the same key."""
        path = f"/devices/{_safe(device_id)}/labels/{_safe(label.key)}"
        return self.transport.repeat("PUT", path, LabelValue(value=label.value), DeviceRecord)

    def unlabel(self, device_id: str, key: str) -> None:
        """Take a label from a device."""
        self.transport.delete(f"/devices/{_safe(device_id)}/labels/{_safe(key)}")

    def groups(self) -> Iterator[Group]:
        """Yield groups in the order of their names."""
        cursor: str | None = None
        while True:
            page = self.transport.get("/groups", GroupPage, limit=PAGE, cursor=cursor)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def put_group(self, name: str, selector: Selector) -> Group:
        """Name a selector, in place of what had the name before."""
        return self.transport.repeat("PUT", f"/groups/{_safe(name)}", selector, Group)

    def remove_group(self, name: str) -> None:
        """Forget a group."""
        self.transport.delete(f"/groups/{_safe(name)}")

    def preview_campaign(self, request: CampaignRequest) -> tuple[SweepPreview, ...]:
        """Look at each sweep of a campaign before it is asked for."""
        return self.transport.repeat("POST", "/campaigns/preview", request, tuple[SweepPreview, ...])

    def submit_campaign(self, request: CampaignRequest, key: str | None = None) -> CampaignRecord:
        """Ask for a campaign, once; ``key`` is the Idempotency-Key, None takes a new one."""
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        return self.transport.repeat("POST", "/campaigns", request, CampaignRecord, headers)

    def campaign(self, campaign_id: str) -> CampaignRecord:
        """Return one campaign with its sweeps."""
        return self.transport.get(f"/campaigns/{_safe(campaign_id)}", CampaignRecord)

    def book(self, request: BookingRequest) -> BookingRecord:
        """Book a device; sent once, as a second booking would overlap the first."""
        return self.transport.post("/bookings", request, BookingRecord)

    def bookings(
        self, *, device_id: str | None = None, kind: BookingKind | None = None, ends_after: datetime | None = None
    ) -> Iterator[BookingRecord]:
        """Yield bookings, those that begin first first."""
        cursor: str | None = None
        filters = {"device_id": device_id, "kind": kind, "ends_after": ends_after}
        while True:
            page = self.transport.get("/bookings", BookingPage, limit=PAGE, cursor=cursor, **filters)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def unbook(self, booking_id: int) -> None:
        """Remove a booking."""
        self.transport.delete(f"/bookings/{booking_id}")


def _safe(word: str) -> str:
    return quote(word, safe="")
