"""The operating point for a goal under bounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from powerlab.analysis.operating_point.devices import OperatingPoints, of_devices
from powerlab.analysis.operating_point.question import parse_question
from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.store.reads.measured_sweeps import sweep_measured, sweeps_of_model
from powerlab_api.dependencies import ReadSession
from powerlab_api.responses import written
from powerlab_api.roles import Requires

router = APIRouter(prefix="/best", tags=["points"])

Goal = Annotated[
    str | None, Query(description="energy, throughput, latency or battery; by default energy, without power latency")
]


@router.get("", dependencies=[Requires.viewer], response_model=OperatingPoints)
def read_best(
    request: Request,
    session: ReadSession,
    *,
    sweep_id: Annotated[str | None, Query(description="the points of this sweep")] = None,
    model: Annotated[str | None, Query(description="instead: all stored runs of this model, by device")] = None,
    device_id: Annotated[str | None, Query(description="with a model: only this device")] = None,
    goal: Goal = None,
    p99: Annotated[str | None, Query(description="highest 99th percentile latency, such as 30ms")] = None,
    power: Annotated[str | None, Query(description="highest power while running, such as 10W")] = None,
    throughput: Annotated[str | None, Query(description="least throughput, such as 25/s")] = None,
    memory: Annotated[str | None, Query(description="highest peak memory, such as 1GB")] = None,
    temperature: Annotated[str | None, Query(description="highest temperature, such as 70C")] = None,
    sqnr: Annotated[
        str | None, Query(description="least signal to quantisation noise of the outputs, such as 30dB")
    ] = None,
    agreement: Annotated[str | None, Query(description="least top-1 agreement with fp32, such as 99%")] = None,
    accuracy: Annotated[str | None, Query(description="least top-1 accuracy on labelled images, such as 90%")] = None,
    rate: Annotated[
        str | None, Query(description="images that arrive, such as 25/s; energy then includes idling")
    ] = None,
    battery: Annotated[str | None, Query(description="what the battery holds, such as 50Wh")] = None,
) -> Response:
    """Return the best point for a goal among those that keep all bounds with their whole 95 % intervals.

    With it come the points that are tied with it, what each bound costs, and the best points at other arrival rates.
    Where no point keeps all bounds, the problem says which one is missed and by how much.
    """
    bounds = {
        "p99": p99,
        "power": power,
        "throughput": throughput,
        "memory": memory,
        "temperature": temperature,
        "sqnr": sqnr,
        "agreement": agreement,
        "accuracy": accuracy,
    }
    _check_words(request.query_params.keys(), ("sweep_id", "model", "device_id", "goal", *bounds, "rate", "battery"))
    question = parse_question(goal, bounds, rate, battery)
    if (sweep_id is None) == (model is None) or (sweep_id is not None and device_id is not None):
        raise PowerlabError("give either sweep_id, or model with or without device_id.")
    if sweep_id is not None:
        return written(of_devices([sweep_measured(session, sweep_id)], question))
    return written(of_devices(sweeps_of_model(session, model or "", device_id), question))


def _check_words(given: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a parameter that does not exist: a bound that is left out without a word makes another answer."""
    for word in given:
        if word not in known:
            raise PowerlabError(f"there is no parameter {word!r}{meant(word, known)}; choose from: {', '.join(known)}.")
