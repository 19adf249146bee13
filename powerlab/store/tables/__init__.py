"""The tables as typed SQLAlchemy models, one subject per file. Start at :mod:`.base`.

The Alembic migrations must agree with them; a test compares both.
"""

from powerlab.store.tables.access import ServerKeyRow, TokenRow
from powerlab.store.tables.backlogs import DeviceBacklogRow
from powerlab.store.tables.base import Base
from powerlab.store.tables.baselines import BaselineSweepRow
from powerlab.store.tables.bookings import BookingRow
from powerlab.store.tables.devices import (
    AuditEventRow,
    DeviceRow,
    DeviceSnapshotRow,
    EnrolmentCodeRow,
    PowerModeRow,
    RailRow,
)
from powerlab.store.tables.events import EventRow
from powerlab.store.tables.labs import DeviceGroupRow, DeviceLabelRow
from powerlab.store.tables.layers import LayerProfileRow
from powerlab.store.tables.networks import ModelPieceRow, ModelRow
from powerlab.store.tables.readings import DevicePhaseRow, DeviceReadingRow, DeviceWatchRow
from powerlab.store.tables.retirement import RetirementRow
from powerlab.store.tables.runs import RunMetricRow, RunRow, TraceChunkRow
from powerlab.store.tables.summaries import SweepSummaryRow
from powerlab.store.tables.sweeps import (
    CampaignRow,
    JobRow,
    PointRow,
    SweepCandidateRow,
    SweepNodeRow,
    SweepRow,
    WorkloadRow,
)
from powerlab.store.tables.tallies import DeviceTallyRow

__all__ = [
    "AuditEventRow",
    "Base",
    "BaselineSweepRow",
    "BookingRow",
    "CampaignRow",
    "DeviceBacklogRow",
    "DeviceGroupRow",
    "DeviceLabelRow",
    "DevicePhaseRow",
    "DeviceReadingRow",
    "DeviceRow",
    "DeviceSnapshotRow",
    "DeviceTallyRow",
    "DeviceWatchRow",
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
    "SweepNodeRow",
    "SweepRow",
    "SweepSummaryRow",
    "TokenRow",
    "TraceChunkRow",
    "WorkloadRow",
]
