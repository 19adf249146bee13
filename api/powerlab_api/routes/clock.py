"""The server's clock, for agents that measure their offset."""

from __future__ import annotations

import time

from fastapi import APIRouter

from powerlab.protocol.messages import ServerTime
from powerlab_api.roles import Requires

router = APIRouter(tags=["health"])


@router.get("/time", dependencies=[Requires.nobody])
async def read_time() -> ServerTime:
    """Tell when the question came and when the answer goes (RFC 5905, section 8).

    Answered on the event loop itself: what a thread of the pool is waited for would count as time on the line.
    """
    received_ns = time.time_ns()
    return ServerTime(received_ns=received_ns, sent_ns=time.time_ns())
