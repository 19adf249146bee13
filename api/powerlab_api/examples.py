"""Example bodies for the OpenAPI document."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body
from fastapi.openapi.models import Example

from powerlab.protocol.labs import CampaignRequest
from powerlab.protocol.messages import CloneRequest, SweepRequest

_DEVICE = "0b7a1e0c-3f57-4a53-9d0e-2a51a4f6d3c1"

SweepBody = Annotated[
    SweepRequest,
    Body(
        openapi_examples={
            "threads and modes": Example(
                summary="one model over threads and power modes",
                value={
                    "device_id": _DEVICE,
                    "plan": {"models": ["resnet50"], "threads": [1, 2, 4], "modes": ["MAXN", "MODE_15W"]},
                },
            ),
            "urgent": Example(
                summary="a minute a run, before everything else that waits",
                value={
                    "device_id": _DEVICE,
                    "priority": 10,
                    "plan": {"models": ["mobilenetv2"], "threads": [4], "duration_s": 60, "batch_sizes": [1, 8]},
                },
            ),
            "any of several": Example(
                summary="on the first board of a kind that is free",
                value={
                    "any_of": {"board": "jetson-orin-nano", "labels": ["rack=3"]},
                    "plan": {"models": ["resnet50"], "threads": [1, 2, 4]},
                },
            ),
        }
    ),
]
CampaignBody = Annotated[
    CampaignRequest,
    Body(
        openapi_examples={
            "one of each board": Example(
                summary="one sweep for each kind of board among the devices with a label",
                value={
                    "each": "board",
                    "of": {"labels": ["rack=3"]},
                    "plan": {"models": ["resnet50"], "threads": [1, 2, 4]},
                },
            ),
        }
    ),
]
CloneBody = Annotated[
    CloneRequest,
    Body(
        openapi_examples={
            "as it was": Example(summary="the same once more", value={}),
            "longer": Example(
                summary="other threads, longer runs", value={"changes": {"threads": [8], "duration_s": 60}}
            ),
        }
    ),
]
