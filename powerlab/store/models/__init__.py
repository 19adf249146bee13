"""The tables, typed. The Alembic migrations and these models must agree; a test compares them."""

from powerlab.store.models.access import ServerKeyRow, TokenRow
from powerlab.store.models.backlogs import DeviceBacklogRow
from powerlab.store.models.base import Base
from powerlab.store.models.bookings import BookingRow
from powerlab.store.models.devices import (
    AuditEventRow,
    DeviceRow,
    DeviceSnapshotRow,
    EnrolmentCodeRow,
    PowerModeRow,
    RailRow,
)
from powerlab.store.models.events import EventRow
from powerlab.store.models.labs import DeviceGroupRow, DeviceLabelRow
from powerlab.store.models.layers import LayerProfileRow
from powerlab.store.models.networks import ModelPieceRow, ModelRow
from powerlab.store.models.retirement import RetirementRow
from powerlab.store.models.runs import RunMetricRow, RunRow, TraceChunkRow
from powerlab.store.models.summaries import SweepSummaryRow
from powerlab.store.models.sweeps import CampaignRow, JobRow, PointRow, SweepCandidateRow, SweepRow, WorkloadRow
from powerlab.store.models.tallies import DeviceTallyRow

__all__ = [
    "AuditEventRow",
    "Base",
    "BookingRow",
    "CampaignRow",
    "DeviceBacklogRow",
    "DeviceGroupRow",
    "DeviceLabelRow",
    "DeviceRow",
    "DeviceSnapshotRow",
    "DeviceTallyRow",
    "EnrolmentCodeRow",
    "EventRow",
    "JobRow",
    "LayerProfileRow",
    "ModelPieceRow",
    "ModelRow",
    "PointRow",
    "PowerModeRow",
    "RailRow",
    "RetirementRow",
    "RunMetricRow",
    "RunRow",
    "ServerKeyRow",
    "SweepCandidateRow",
    "SweepRow",
    "SweepSummaryRow",
    "TokenRow",
    "TraceChunkRow",
    "WorkloadRow",
]
