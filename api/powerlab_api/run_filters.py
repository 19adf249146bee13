"""Query parameters that filter runs, wherever runs or their metrics are listed."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query
from pydantic import AwareDatetime

from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Verdict
from powerlab.domain.workload import Processor, Recompute, Scenario, WorkloadKind
from powerlab.store.reads.filters import RunFilter

Moment = Annotated[AwareDatetime | None, Query(description="a time with its zone, as in 2026-01-02T03:04:05Z")]


def _wish(
    *,
    sweep_id: str | None = None,
    device_id: str | None = None,
    model: str | None = None,
    engine: str | None = None,
    precision: str | None = None,
    processor: Annotated[Processor | None, Query(description="what computed the model")] = None,
    workload: Annotated[WorkloadKind | None, Query(description="what was done with the model")] = None,
    optimizer: Annotated[str | None, Query(description="how steps of training moved the weights")] = None,
    recompute: Annotated[Recompute | None, Query(description="whether they computed activations again")] = None,
    batch_size: Annotated[int | None, Query(ge=1)] = None,
    scenario: Scenario | None = None,
    threads: Annotated[int | None, Query(ge=1)] = None,
    mode: Annotated[str | None, Query(description="a power mode's name")] = None,
    verdict: Verdict | None = None,
    provenance: Annotated[Provenance | None, Query(description="of the run's figures of power")] = None,
    simulated: Annotated[bool | None, Query(description="whether the device is a simulated board")] = None,
    received_from: Moment = None,
    received_to: Moment = None,
) -> RunFilter:
    return RunFilter(
        sweep_id=sweep_id,
        device_id=device_id,
        model=model,
        engine=engine,
        precision=precision,
        processor=processor,
        workload=workload,
        optimizer=optimizer,
        recompute=recompute,
        batch_size=batch_size,
        scenario=scenario,
        threads=threads,
        mode=mode,
        verdict=verdict,
        provenance=provenance,
        simulated=simulated,
        received_from=received_from,
        received_to=received_to,
    )


RunWish = Annotated[RunFilter, Depends(_wish)]
