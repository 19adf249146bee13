"""Asks a server for its fleet in a thread of its own, so that keys work while the server is slow or away."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from powerlab.client import Client
from powerlab.domain.errors import PowerlabError
from powerlab.protocol.fleet import FleetRecord
from powerlab.protocol.readings import LiveRecord

_SHOWN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the server said last.

    Attributes:
        fleet: all devices.
        at: when that was received, by this machine's clock, UTC.
        age_s: how long ago that was.
        device_id: the device whose readings are ``live``; empty for none.
        live: its readings of the last minute; None before there are some.
        problem: why there is nothing newer; empty while the server answers.
    """

    fleet: FleetRecord
    at: datetime
    age_s: float = 0.0
    device_id: str = ""
    live: LiveRecord | None = None
    problem: str = ""


class Feed:
    """Asks as long as the context is open; the first question is asked when it is made.

    Raises:
        PowerlabError: the first question got no answer, or no.
    """

    def __init__(self, client: Client, interval_s: float) -> None:
        self._client = client
        self._changed = threading.Condition()
        self._chosen, self._over = (interval_s, "", False), False
        self._seen = ask_once(client)
        self._received_s = time.monotonic()
        self._thread = threading.Thread(target=self._ask_on, name="fleet", daemon=True)

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def steer(self, interval_s: float, device_id: str, *, paused: bool) -> None:
        """Say how often to ask, and for which device's readings; empty for none."""
        with self._changed:
            self._chosen = (interval_s, device_id, paused)
            self._changed.notify_all()

    def seen(self) -> Seen:
        """Return what the server said last."""
        with self._changed:
            return replace(self._seen, age_s=time.monotonic() - self._received_s)

    def _ask_on(self) -> None:
        while True:
            with self._changed:
                asked = self._chosen
                self._changed.wait_for(partial(self._is_steered, asked), asked[0])
                self._changed.wait_for(lambda: self._over or not self._chosen[2])
                if self._over:
                    return
                device_id = self._chosen[1]
            self._ask(device_id)

    def _is_steered(self, before: tuple[float, str, bool]) -> bool:
        return self._over or self._chosen != before

    def _ask(self, device_id: str) -> None:
        try:
            fleet = self._client.fleet()
            live = self._client.readings(device_id, seconds=_SHOWN_S) if device_id else None
        except PowerlabError as error:
            with self._changed:
                self._seen = replace(self._seen, problem=str(error))
            return
        with self._changed:
            self._seen = Seen(fleet=fleet, at=datetime.now(UTC), device_id=device_id, live=live)
            self._received_s = time.monotonic()


def ask_once(client: Client) -> Seen:
    """Return what a server says now.

    Raises:
        PowerlabError: no answer, or no.
    """
    return Seen(fleet=client.fleet(), at=datetime.now(UTC))
