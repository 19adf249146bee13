"""Settings that may differ between two servers of one database."""

from __future__ import annotations

from dataclasses import dataclass, field

from powerlab.access.limits import Limits
from powerlab.store.writes.jobs import LEASE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a server behaves.

    Attributes:
        operator_token: one more token, an admin's, beside those in the database.
        login_needed: whether everybody needs a token, as with ``operator_token``. Without either nobody does, which is
            right only where nobody else reaches the server (it is bound to loopback).
        allowed_hosts: names in the Host header that are answered; empty answers all. A server on loopback names
            itself only, so that a web page elsewhere cannot reach it through a name of its own (DNS rebinding).
        lease_s: how long a job stays with an agent that says nothing.
        max_lease_wait_s: how long a lease request may wait for a job.
        most_waiting: requests that may wait for a thread; more are told to come later.
        max_body_bytes: larger requests are refused.
        max_event_streams: readers of live events that one process serves at the same time.
        max_event_stream_s: how long a stream lasts; then its reader asks again, and whether it still may is looked at.
        max_model_bytes: larger models are refused; a protobuf message, which an ONNX file is, has 2 GiB at most.
        limits: how often somebody may ask; each server counts its own.
    """

    operator_token: str | None = None
    login_needed: bool = False
    allowed_hosts: frozenset[str] = frozenset()
    lease_s: float = LEASE_S
    max_lease_wait_s: float = 30.0
    most_waiting: int = 100
    max_body_bytes: int = 8 * 1024 * 1024
    max_event_streams: int = 100
    max_event_stream_s: float = 300.0
    max_model_bytes: int = 2 * 1024 * 1024 * 1024
    limits: Limits = field(default_factory=Limits)


LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
