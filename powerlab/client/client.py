"""One method per address of the API; see docs/api.md."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from powerlab.analysis.operating_point.devices import OperatingPoints
from powerlab.analysis.summary import PointSummary
from powerlab.client.transport import Transport
from powerlab.domain.device import Capabilities
from powerlab.domain.layers import LayerProfile
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Run, Verdict
from powerlab.domain.selector import Selector
from powerlab.domain.workload import Processor, Recompute, Scenario, WorkloadKind
from powerlab.measure.audit.audit import Audit
from powerlab.protocol.fleet import FleetRecord
from powerlab.protocol.identifiers import Identifier
from powerlab.protocol.messages import (
    CloneRequest,
    EnrolmentCode,
    EnrolmentCodeRequest,
    RepeatRequest,
    SweepRequest,
)
from powerlab.protocol.readings import LiveRecord
from powerlab.protocol.records import (
    DevicePage,
    DeviceRecord,
    FigurePage,
    FigureRecord,
    JobPage,
    JobRecord,
    LayerProfilePage,
    PointPage,
    PointRecord,
    RunPage,
    SweepPage,
    SweepPreview,
    SweepRecord,
    SweepState,
    TraceView,
    WorkloadPage,
    WorkloadRecord,
)

_Item_co = TypeVar("_Item_co", covariant=True)
PAGE = 500
"""Items asked for at a time."""


class _Page(Protocol[_Item_co]):
    @property
    def items(self) -> tuple[_Item_co, ...]: ...
    @property
    def next_cursor(self) -> str | None: ...


class Client:
    """Asks one server. Lists are generators that turn the pages; None leaves a filter out.

    Every method raises :class:`~powerlab.client.errors.StatusError` where the server says no, and
    :class:`~powerlab.client.errors.ServerAwayError` where it does not answer. What may be sent twice is tried again a
    few times first: reading, and everything below but :meth:`enrolment_code`.

    Attributes:
        transport: how requests are sent.
    """

    def __init__(self, server: str, token: str | None = None) -> None:
        self.transport = Transport(server, token)

    @property
    def server(self) -> str:
        """The server's address."""
        return self.transport.server

    def devices(
        self,
        *,
        name: str | None = None,
        board: str | None = None,
        simulated: bool | None = None,
        seen_since: datetime | None = None,
        selector: Selector | None = None,
    ) -> Iterator[DeviceRecord]:
        """Yield devices in the order of their names; ``name`` is a part of it, a board of the selector's goes first."""
        chosen = selector or Selector()
        filters = {"name": name, "board": chosen.board or board, "simulated": simulated, "seen_since": seen_since}
        return self._all("/devices", DevicePage, **filters, label=chosen.labels, group=chosen.group or None)

    def device(self, device_id: str) -> DeviceRecord:
        """Return one device."""
        return self.transport.get(f"/devices/{_safe(device_id)}", DeviceRecord)

    def capabilities(self, device_id: str) -> Capabilities:
        """Return what a device can measure and be set to."""
        return self.transport.get(f"/devices/{_safe(device_id)}/capabilities", Capabilities)

    def fleet(self) -> FleetRecord:
        """Return every device as it is now: what it does, and what it read last."""
        return self.transport.get("/fleet", FleetRecord)

    def readings(self, device_id: str, *, seconds: float = 300.0) -> LiveRecord:
        """Return a device's readings of the last ``seconds``, oldest first, and the phase of its sweep."""
        return self.transport.get(f"/devices/{_safe(device_id)}/readings", LiveRecord, seconds=seconds)

    def enrolment_code(self, request: EnrolmentCodeRequest) -> EnrolmentCode:
        """Make a code that enrols one device."""
        return self.transport.post("/enrolment-codes", request, EnrolmentCode)

    def preview(self, request: SweepRequest) -> SweepPreview:
        """Look at a sweep before it is asked for."""
        return self.transport.repeat("POST", "/sweeps/preview", request, SweepPreview)

    def submit(self, request: SweepRequest, key: str | None = None) -> SweepRecord:
        """Ask for a sweep, once: a request that is tried again makes no second one.

        Args:
            request: the device and the plan.
            key: the Idempotency-Key; the same request under the same key is the same sweep, also from another program.
                None takes a new one.
        """
        return self.transport.repeat("POST", "/sweeps", request, SweepRecord, _key(key))

    def submit_as(self, sweep_id: str, request: SweepRequest) -> SweepRecord:
        """Ask for a sweep under an identifier of one's own, a UUID."""
        return self.transport.repeat("PUT", f"/sweeps/{_safe(sweep_id)}", request, SweepRecord)

    def sweeps(
        self,
        *,
        device_id: str | None = None,
        state: SweepState | None = None,
        model: str | None = None,
        submitter: str | None = None,
        campaign_id: str | None = None,
        created_from: datetime | None = None,
        created_to: datetime | None = None,
    ) -> Iterator[SweepRecord]:
        """Yield sweeps, newest first."""
        filters = {"device_id": device_id, "state": state, "model": model, "submitter": submitter}
        filters["campaign_id"] = campaign_id
        return self._all("/sweeps", SweepPage, **filters, created_from=created_from, created_to=created_to)

    def sweep(self, sweep_id: str) -> SweepRecord:
        """Return one sweep."""
        return self.transport.get(f"/sweeps/{_safe(sweep_id)}", SweepRecord)

    def summaries(self, sweep_id: str) -> tuple[PointSummary, ...]:
        """Return one summary for each point of a sweep that has runs."""
        return self.transport.get(f"/sweeps/{_safe(sweep_id)}/points", tuple[PointSummary, ...])

    def pause(self, sweep_id: str) -> SweepRecord:
        """Stop a sweep after its run in progress."""
        return self._change(sweep_id, "pause")

    def resume(self, sweep_id: str) -> SweepRecord:
        """Let a paused sweep go on."""
        return self._change(sweep_id, "resume")

    def cancel(self, sweep_id: str) -> SweepRecord:
        """End a sweep for good."""
        return self._change(sweep_id, "cancel")

    def repeat(self, sweep_id: str, add: int) -> SweepRecord:
        """Ask for further repeats of every point of a sweep that is over; sent once, as every request adds some."""
        return self.transport.post(f"/sweeps/{_safe(sweep_id)}/repeat", RepeatRequest(add=add), SweepRecord)

    def clone(self, sweep_id: str, request: CloneRequest, key: str | None = None) -> SweepRecord:
        """Ask for a sweep once more, with changes; ``key`` as in :meth:`submit`."""
        return self.transport.repeat("POST", f"/sweeps/{_safe(sweep_id)}/clone", request, SweepRecord, _key(key))

    def jobs(
        self,
        *,
        state: SweepState | None = None,
        device_id: str | None = None,
        sweep_id: str | None = None,
        submitter: str | None = None,
    ) -> Iterator[JobRecord]:
        """Yield jobs, newest first."""
        return self._all("/jobs", JobPage, state=state, device_id=device_id, sweep_id=sweep_id, submitter=submitter)

    def job(self, job_id: str) -> JobRecord:
        """Return one job."""
        return self.transport.get(f"/jobs/{_safe(job_id)}", JobRecord)

    def runs(
        self,
        *,
        sweep_id: str | None = None,
        device_id: str | None = None,
        model: str | None = None,
        engine: str | None = None,
        precision: str | None = None,
        processor: Processor | None = None,
        workload: WorkloadKind | None = None,
        optimizer: str | None = None,
        recompute: Recompute | None = None,
        batch_size: int | None = None,
        scenario: Scenario | None = None,
        threads: int | None = None,
        mode: str | None = None,
        verdict: Verdict | None = None,
        provenance: Provenance | None = None,
        simulated: bool | None = None,
        received_from: datetime | None = None,
        received_to: datetime | None = None,
    ) -> Iterator[Run]:
        """Yield runs in the order in which they arrived; ``provenance`` is that of their figures of power."""
        filters = {name: value for name, value in locals().items() if name != "self"}
        return self._all("/runs", RunPage, **filters)

    def run(self, run_id: str) -> Run:
        """Return the run whose identifier begins so."""
        return self.transport.get(f"/runs/{_safe(run_id)}", Run)

    def audit(self, run_id: str) -> Audit:
        """Let the server work a run out again from its record."""
        return self.transport.get(f"/runs/{_safe(run_id)}/audit", Audit)

    def traces(
        self, run_id: str, *, from_ns: int | None = None, to_ns: int | None = None, points: int = 1000
    ) -> tuple[TraceView, ...]:
        """Return what was recorded with a run, within a window of its clock, in at most so many points a trace."""
        kind = tuple[TraceView, ...]
        return self.transport.get(f"/runs/{_safe(run_id)}/traces", kind, from_ns=from_ns, to_ns=to_ns, points=points)

    def figures(
        self,
        name: str,
        *,
        low: float | None = None,
        high: float | None = None,
        device_id: str | None = None,
        model: str | None = None,
        sweep_id: str | None = None,
    ) -> Iterator[FigureRecord]:
        """Yield one metric's figures across runs, within bounds."""
        filters = {"device_id": device_id, "model": model, "sweep_id": sweep_id}
        return self._all("/metrics", FigurePage, name=name, low=low, high=high, **filters)

    def workloads(self, *, model: str | None = None, engine: str | None = None) -> Iterator[WorkloadRecord]:
        """Yield what was ever asked to be run."""
        return self._all("/workloads", WorkloadPage, model=model, engine=engine)

    def points(
        self,
        *,
        sweep_id: str | None = None,
        device_id: str | None = None,
        point_id: str | None = None,
        model: str | None = None,
        threads: int | None = None,
    ) -> Iterator[PointRecord]:
        """Yield points of sweeps, the first asked for first."""
        filters = {"sweep_id": sweep_id, "device_id": device_id, "point_id": point_id}
        return self._all("/points", PointPage, **filters, model=model, threads=threads)

    def identifiers(self, beginning: str) -> tuple[Identifier, ...]:
        """Return what has an identifier that begins so, and devices and models whose name does."""
        return self.transport.get("/identifiers", tuple[Identifier, ...], beginning=beginning)

    def best(
        self,
        *,
        sweep_id: str | None = None,
        model: str | None = None,
        device_id: str | None = None,
        goal: str | None = None,
        p99: str | None = None,
        power: str | None = None,
        throughput: str | None = None,
        memory: str | None = None,
        temperature: str | None = None,
        rate: str | None = None,
        battery: str | None = None,
    ) -> OperatingPoints:
        """Return the operating points of a sweep, or of a model by device; bounds are words, such as ``30ms``."""
        asked = {name: value for name, value in locals().items() if name != "self"}
        return self.transport.get("/best", OperatingPoints, **asked)

    def layer_profiles(self, *, device_id: str | None = None) -> Iterator[LayerProfile]:
        """Yield layer profiles, newest first."""
        return self._all("/layers", LayerProfilePage, device_id=device_id)

    def _change(self, sweep_id: str, verb: str) -> SweepRecord:
        return self.transport.repeat("POST", f"/sweeps/{_safe(sweep_id)}/{verb}", {}, SweepRecord)

    def _all(self, path: str, kind: type[_Page[_Item_co]], **filters: Any) -> Iterator[_Item_co]:
        cursor: str | None = None
        while True:
            page = self.transport.get(path, kind, **filters, limit=PAGE, cursor=cursor)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return


def _safe(identifier: str) -> str:
    return quote(identifier, safe="")


def _key(key: str | None) -> dict[str, str]:
    return {"Idempotency-Key": key or str(uuid.uuid4())}
