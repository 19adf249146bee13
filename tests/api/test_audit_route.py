"""The audit of a run over the API."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from fastapi.testclient import TestClient

from powerlab.domain.run import Verdict
from powerlab.measure.audit.audit import Audit
from powerlab.protocol.chunks import split
from powerlab.protocol.messages import ChunkUpload, Lease, RunUpload
from recorded_run import Recorded, recorded_run
from server_examples import PLAN


def put(agent: Any, lease: Lease, recorded: Recorded) -> None:
    token = lease.fencing_token
    run = recorded.run
    assert agent.send("PUT", f"/runs/{run.id}", RunUpload(fencing_token=token, run=run)).status_code == 201
    for trace in recorded.traces:
        for chunk in split(trace):
            message = ChunkUpload(fencing_token=token, chunk=chunk)
            assert agent.send("PUT", f"/runs/{run.id}/traces/chunks", message).status_code == 201


@pytest.fixture
def recorded(sweep_id: str) -> Recorded:
    return recorded_run(sweep_id=sweep_id, point=PLAN.points()[-1])


def test_what_an_agent_uploaded_gives_itself_again(
    client: TestClient, agent: Any, lease: Lease, recorded: Recorded
) -> None:
    put(agent, lease, recorded)
    for name in (recorded.run.id, recorded.run.id[:13]):
        reply = client.get(f"/api/v1/runs/{name}/audit")
        assert reply.status_code == 200, reply.text
        audit = msgspec.json.decode(reply.content, type=Audit)
        assert audit.equal
        assert audit.run == recorded.run
        assert audit.mlperf_ruling == "rejected"
        assert {one.rule for one in audit.mlperf} >= {"duration", "analyser", "LoadGen"}


def test_an_agent_that_lies_is_found_out(client: TestClient, agent: Any, lease: Lease, recorded: Recorded) -> None:
    power = recorded.run.metric("power_w")
    assert power is not None
    better = tuple(replace(one, value=power.low) if one is power else one for one in recorded.run.metrics)
    put(agent, lease, recorded.but(metrics=better, verdict=Verdict.FLAGGED))
    said = client.get(f"/api/v1/runs/{recorded.run.id}/audit").json()
    assert not said["equal"]
    assert [one["what"] for one in said["compared"] if not one["equal"]] == ["Power while running", "verdict"]


def test_there_is_no_such_run(client: TestClient) -> None:
    reply = client.get("/api/v1/runs/nobody/audit")
    assert reply.status_code == 404
    assert "there is no run 'nobody'" in reply.json()["detail"]


def test_a_run_that_cannot_be_audited_says_why(
    client: TestClient, agent: Any, lease: Lease, recorded: Recorded
) -> None:
    put(agent, lease, recorded.but(conditions=None))
    reply = client.get(f"/api/v1/runs/{recorded.run.id}/audit")
    assert 400 <= reply.status_code < 500
    assert "older powerlab" in reply.json()["detail"]
