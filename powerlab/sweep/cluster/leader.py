"""The first device of a cluster: it waits for the others, lets them follow, and asks for what they recorded."""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from powerlab.domain.errors import PowerlabError
from powerlab.domain.place import GONE, Place
from powerlab.domain.power import Rail, TotalFormula
from powerlab.domain.quantity import common_provenance
from powerlab.domain.run import NodePower
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.measure.nodes import Recorded
from powerlab.measure.recording.rails import Meter, most_cores
from powerlab.measure.worker.process import LOAD_TIMEOUT_S, WorkerError
from powerlab.sweep.cluster.clocks import Comparison, aligned, compare
from powerlab.sweep.cluster.link import Begin, Done, End, Finish, LinkError, Record, Recording
from powerlab.sweep.cluster.others import Other, Others, renamed

PATIENCE_S = 60.0
"""How long a run waits for a device that is not there."""
_LOOK_S = 0.5


class Cluster:
    """The other devices; fulfils :class:`powerlab.measure.nodes.Nodes`.

    Args:
        name: this device's.
        others: names of the others, by rank.
        plan: the sweep's.
        stop: ends waiting.
        patience_s: how long a run waits for a device that is not there.

    Attributes:
        port: where they may come.
        key: what they must know.
    """

    def __init__(
        self,
        name: str,
        others: Sequence[str],
        plan: SweepPlan,
        stop: threading.Event,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._name, self._plan, self._patience_s = name, plan, patience_s
        self._others = Others(name, others, stop, patience_s)
        self._names = self._others.names
        self.key, self.port = self._others.key, self._others.port
        self._rails: dict[str, tuple[Rail, ...]] = {}
        self._unrecorded: dict[str, str] = {}

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        self._others.__exit__(*error)

    @property
    def rails(self) -> tuple[Rail, ...]:
        """Rails of all the others, each named after its device, too."""
        return tuple(rail for name in self._names for rail in self._rails.get(name, ()))

    def joined(self, own: Meter) -> Meter:
        """Wait for all the others, and return a meter of the power of all devices; of none where one has none.

        Raises:
            PowerlabError: one does not come, or what they say of their power cannot be added up.
        """
        others = self._others.gathered()
        named = {name: tuple(renamed(rail, name) for rail in others[name].hello.rails) for name in others}
        self._rails = named if own.total is not None and all(named.values()) else {}
        self._others.rails = named
        if own.total is None or not self._rails:
            return replace(own, total=None, rails=(), lively={}, nodes=self)
        rails = (*own.rails, *self.rails)
        common_provenance(rail.provenance for rail in rails)
        scopes = [f"{self._name}: {own.total.scope}", *(f"{name}: {others[name].hello.scope}" for name in self._names)]
        total = TotalFormula(
            rails=tuple(rail.key for rail in rails), scope="; ".join(scopes), proposed=own.total.proposed
        )
        lively = dict(own.lively)
        for name, other in others.items():
            keys = {rail.key: new.key for rail, new in zip(other.hello.rails, self._rails[name], strict=True)}
            lively |= {keys[key]: rate for key, rate in other.hello.lively.items()}
        return replace(own, total=total, rails=rails, lively=lively, nodes=self)

    def place(self) -> Place:
        """Return the first process's place in a new ring."""
        listener = socket.create_server(("", 0))
        port = int(listener.getsockname()[1])
        return Place(
            rank=0, size=1 + len(self._names), key=secrets.token_hex(32), port=port, listener=listener.detach()
        )

    @contextmanager
    def run(self, point: Point, place: Place, kill: Callable[[], None]) -> Iterator[None]:
        """Let the others load a point and follow; raises WorkerError where one of them cannot, or is gone."""
        if place.listener is not None:
            os.close(place.listener)  # the worker has it: who comes when that is gone is turned away at once
        try:
            others = self._others.gathered()
        except PowerlabError as error:
            raise WorkerError(str(error)) from error
        failures: dict[str, str] = {}
        over = threading.Event()

        def fail(name: str, sentence: str) -> None:
            failures.setdefault(name, sentence)
            kill()

        def watch(rank: int, name: str, other: Other) -> None:
            request = Begin(plan=self._plan, point=point, place=replace(place, rank=rank, listener=None))
            try:
                told = other.link.ask(request, Done, LOAD_TIMEOUT_S + self._patience_s).failure
                if told:
                    fail(name, told)
                while not over.is_set():
                    if other.link.is_gone(_LOOK_S):
                        raise LinkError("it closed the connection")
            except (LinkError, OSError, ValueError) as error:
                fail(name, self._others.lost(name, other, error))

        threads = [
            threading.Thread(target=watch, args=(rank, name, others[name]), name=f"cluster-{name}", daemon=True)
            for rank, name in enumerate(self._names, start=1)
        ]
        for thread in threads:
            thread.start()
        failed: Exception | None = None
        try:
            yield
        except (PowerlabError, WorkerError) as error:
            failed = error
        finally:
            over.set()
            for thread in threads:
                thread.join()
            for name, other in others.items():
                if name not in failures and (told := self._ended(name, other)):
                    failures[name] = told
        causes = {name: told for name, told in failures.items() if GONE not in told}
        if failed is not None and not causes:
            raise failed
        if failures:
            name, told = next(iter((causes or failures).items()))
            raise WorkerError(told if name in told else f"{name}: {told}") from failed

    def _ended(self, name: str, other: Other) -> str:
        try:
            return other.link.ask(End(), Done, LOAD_TIMEOUT_S).failure
        except LinkError as error:
            return self._others.lost(name, other, error)

    def record(self) -> None:
        """Compare clocks and begin to record."""
        self._unrecorded = {name: "it was not there" for name in self._names if name not in self._others.there}
        for name, other in list(self._others.there.items()):
            try:
                other.before = compare(other.link)
                other.link.ask(Record(), Done)
            except LinkError as error:
                self._unrecorded[name] = str(error)

    def recorded(self) -> Recorded:
        """End recording; return what there is on this device's clock."""
        found: dict[str, tuple[Recording, Comparison, Comparison]] = {}
        for name, other in list(self._others.there.items()):
            if other.before is None or name in self._unrecorded:
                continue
            try:
                recording = other.link.ask(Finish(), Recording)
                after = compare(other.link)
            except LinkError as error:
                self._unrecorded[name] = str(error)
                continue
            other.clock_error_s = max(other.before.error_s, after.error_s)
            found[name] = recording, other.before, after
            if recording.failure:
                self._unrecorded[name] = recording.failure
        failures = [f"the power of {name} was not recorded: {told}" for name, told in self._unrecorded.items()]
        parts = [(name, *one) for name, one in found.items()]
        return Recorded(
            traces=tuple(
                aligned(replace(one.trace(), rail=renamed(one.rail, name)), before, after)
                for name, recording, before, after in parts
                for one in recording.rails
            ),
            zones=tuple(
                aligned(replace(one.trace(), rail=renamed(one.rail, name)), before, after)
                for name, recording, before, after in parts
                for one in recording.zones
            ),
            throttled=tuple(f"{name}: {told}" for name, recording, _, _ in parts for told in recording.throttled),
            failure=failures[0] if failures and self._rails else None,
            drift=next((f"{name}: {recording.drift}" for name, recording, _, _ in parts if recording.drift), None),
            background_cores=most_cores(recording.background_cores for _, recording, _, _ in parts),
        )

    def powers(self, own: Sequence[Rail]) -> tuple[NodePower, ...]:
        """Return all devices with their rails and clocks."""
        others = (
            NodePower(
                name=name,
                rails=tuple(rail.key for rail in self._rails.get(name, ())),
                clock_error_s=self._others.there[name].clock_error_s if name in self._others.there else 0.0,
            )
            for name in self._names
        )
        return (NodePower(name=self._name, rails=tuple(rail.key for rail in own)), *others)
