"""The files that ``powerlab profile`` writes: a line a run as it finishes, or the whole document of ``--json``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from powerlab.domain.device import Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.records import SweepRecord, SweepState


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFile:
    """What a results file holds; runs are in the order in which they are there."""

    sweep_id: str
    device: Device
    plan: SweepPlan
    runs: tuple[Run, ...]
    written_at: datetime

    @property
    def record(self) -> SweepRecord:
        """The sweep, as a server would describe it; one whose file lacks runs has failed."""
        planned = max(self.plan.point_count * self.plan.repeats, len(self.runs))
        missing = planned - len(self.runs) if not self.plan.until_percent else 0
        return SweepRecord(
            id=self.sweep_id,
            device_id=self.device.name,
            device_name=self.device.name,
            simulated=self.device.simulated,
            plan=self.plan,
            state=SweepState.FAILED if missing else SweepState.DONE,
            detail=f"{missing} runs are not in its file" if missing else "",
            created_at=min((datetime.fromisoformat(run.started_at) for run in self.runs), default=self.written_at),
            finished_at=self.written_at,
            planned_run_count=planned,
            stored_run_count=len(self.runs),
        )


class _Header(msgspec.Struct):
    """What a document and the first line of a results file have in common."""

    sweep_id: str
    device: Device
    plan: SweepPlan
    runs: tuple[Run, ...] = ()


class _Line(msgspec.Struct):
    run: Run


def read_sweep_file(path: Path) -> SweepFile:
    """Return what a results file holds.

    Raises:
        PowerlabError: it cannot be read, or is none.
    """
    try:
        content = path.read_bytes()
        written_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as error:
        raise PowerlabError(f"{path} cannot be read ({error.strerror}); give a sweep that can be.") from error
    first, _, rest = content.partition(b"\n")
    try:
        if first.strip() == b"{":
            header = msgspec.json.decode(content, type=_Header)
            runs = header.runs
        else:
            header = msgspec.json.decode(first, type=_Header)
            runs = tuple(msgspec.json.decode(line, type=_Line).run for line in rest.splitlines() if line.strip())
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise PowerlabError(
            f"{path} holds no sweep ({error}); give a sweep's identifier, or a file that `powerlab profile` wrote."
        ) from error
    return SweepFile(sweep_id=header.sweep_id, device=header.device, plan=header.plan, runs=runs, written_at=written_at)
