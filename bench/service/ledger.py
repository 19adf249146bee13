"""What the simulated agents know: what the server told them it has, and how long they waited for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Ledger:
    """One for all agents of a fleet; used in one thread.

    Attributes:
        submitted: when each sweep was sent to the server, by its id, in s on the client's monotonic clock.
        leases_s: how long each job's first lease took: from when the job was sent to the server or its device asked for
            one, whichever came later, to when the device had it. A device that is told to come later has asked before;
            one whose connection was cut has not. Later leases of a job wait for the one before to run out.
        took_s: time of every other answer, by what was asked.
        events: what happened, counted: requests, answers by status, deaths, uploads sent twice, late uploads refused.
        runs: of which sweep, point and repeat the server confirmed which run.
        chunks: how many chunks of a run the server confirmed.
        finished: sweeps that the server let an agent finish, and how often.
    """

    submitted: dict[str, float] = field(default_factory=dict)
    leases_s: list[float] = field(default_factory=list)
    took_s: dict[str, list[float]] = field(default_factory=dict)
    events: Counter[str] = field(default_factory=Counter)
    runs: dict[tuple[str, str, int], set[str]] = field(default_factory=dict)
    chunks: dict[str, int] = field(default_factory=dict)
    finished: Counter[str] = field(default_factory=Counter)
    _given: set[str] = field(default_factory=set)

    def leased(self, sweep_id: str, asked_at: float, now: float) -> None:
        """Note how long a device waited for a job."""
        if sweep_id in self._given:
            return
        self._given.add(sweep_id)
        self.leases_s.append(now - max(asked_at, self.submitted[sweep_id]))
