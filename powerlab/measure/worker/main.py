"""The process that runs the engine: ``python -m powerlab.measure.worker.main REPLY_FD``.

It may crash without hurting the sweep. Requests come on standard input; replies go to a pipe of their own, because
an engine may print whatever it likes.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from array import array
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from powerlab.boards.simulator import Pacer, pacer
from powerlab.domain.errors import PowerlabError, TooLargeError
from powerlab.domain.preflight import ENGINES
from powerlab.domain.workload import Processor, Workload
from powerlab.measure.layers.messages import FindCeilings, LoadLayers, RepeatStep
from powerlab.measure.scenarios.loops import back_to_back, timed_window
from powerlab.measure.worker.inference import load_slices
from powerlab.measure.worker.messages import (
    Broken,
    Follow,
    Load,
    Measure,
    Ready,
    Refused,
    Reply,
    Show,
    Shown,
    Timed,
    WarmUp,
    encode,
    packed,
    read_request,
    unpacked,
)
from powerlab.measure.worker.part_log import PartLog
from powerlab.sysroot import Sysroot

if TYPE_CHECKING:
    from powerlab.domain.place import Place
    from powerlab.engine.training.ring import RingGroup
    from powerlab.measure.layers.bench import Bench
    from powerlab.measure.worker.simulated_query import SimulatedQuery

_WHOLE_NETWORK = 1.0
"""The switching of a whole network's inferences, which keep a simulated board's cores busy where they follow on each
other: what this machine does between two of them is no rest of that board."""


class Job:
    """A loaded model and what its inferences run in."""

    def __init__(self, request: Load) -> None:
        on_gpu = request.workload.processor is Processor.GPU
        self._pace: Pacer = pacer(Sysroot(Path(request.sysroot)), request.threads, on_gpu)
        self._simulated = None if self._pace.computes else _simulated_query(request, self._pace)
        self._tried = False
        self._parts = PartLog()
        self._inferences = request.workload.inferences_per_query
        self._ring = None if request.place is None else _ring(request.place)
        self._slices = load_slices(
            request.backend_module,
            self._computed_here(request.workload),
            self._pace.host_threads,
            request.spin_us,
            request.seed,
            self._ring,
        )

    @property
    def processor_name(self) -> str:
        """What the engine calls the graphics processor that computes; empty where none does."""
        return self._pace.processor_name or self._slices.processor_name

    def _computed_here(self, workload: Workload) -> Workload:
        """Return what this machine computes once where a simulated card stands for the time.

        That needs no graphics driver in float32. What a lower precision gives on a card, only a driver can show.
        """
        on_cores_too = Processor.CPU in ENGINES.get(workload.engine, ())
        if self._pace.computes or workload.precision != "fp32" or not on_cores_too:
            return workload
        return replace(workload, processor=Processor.CPU)

    def close(self) -> None:
        """Take the load off a simulated board, and end what runs beside this thread."""
        self._pace.close()
        self._slices.close()
        if self._ring is not None:
            self._ring.close()

    def answer(self) -> None:
        """Answer one query."""
        for _ in range(self._inferences):
            if self._ring is not None:
                self._ring.go()
            self._compute()

    def _compute(self) -> None:
        """Run the model once, and note how long its parts took."""
        if self._simulated is None:
            self._slices.run()
            part_ns = self._slices.part_ns
        else:
            part_ns = self._simulated.wait(None if self._ring is None else self._ring.add_up)
        self._parts.note(part_ns)

    def _try(self) -> None:
        """Compute once on a simulated board, which only waits."""
        self._slices.run()
        self._tried = True

    def carry_out(self, request: Follow | WarmUp | Measure | Show) -> Reply:
        """Do what is asked for with the loaded model."""
        match request:
            case Follow():
                return self.follow()
            case WarmUp():
                return self.warm_up(request)
            case Measure():
                return self.measure(request)
            case Show():
                return self.show(request)

    def warm_up(self, request: WarmUp) -> Ready:
        """Answer untimed queries, at least one; a simulated board, which only waits, computes one first."""
        if not (self._pace.computes or self._tried):
            if self._ring is not None:
                self._ring.go()
            self._try()
        begin_ns = time.monotonic_ns()
        with self._pace.at(_WHOLE_NETWORK):
            _, ends = back_to_back(self.answer, begin_ns + round(request.duration_s * 1e9), min_count=1)
        return Ready(inference_s=(ends[-1] - begin_ns) / 1e9 / len(ends))

    def follow(self) -> Ready:
        """Do the same as the first worker of the ring, whenever that does, until it ends."""
        while self._ring is not None and self._ring.go():
            (self._compute if self._pace.computes or self._tried else self._try)()
        return Ready()

    def measure(self, request: Measure) -> Timed:
        """Answer the queries of a timed window."""
        closed_loop = request.queries_per_s == 0
        with self._pace.at(_WHOLE_NETWORK) if closed_loop else nullcontext():
            starts, ends = timed_window(self.answer, request)
        parts = self._parts.taken(starts[0], ends[-1])
        return Timed(start_ns=_little_endian(starts), end_ns=_little_endian(ends), parts=parts)

    def show(self, request: Show) -> Shown:
        """Run one inference, as fast as the host can, and return its outputs."""
        if request.given is not None:
            found = self._slices.run_given(unpacked(request.given))
        else:
            found = self._slices.run() if request.seed is None else self._slices.run_seeded(request.seed)
        return Shown(outputs=list(map(packed, found)))


def _little_endian(values: array[int]) -> bytes:
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def _simulated_query(request: Load, pace: Pacer) -> SimulatedQuery:
    """Return what is waited for in place of a query. Workers on real boards need not load what it needs."""
    from powerlab.measure.worker.simulated_query import SimulatedQuery

    return SimulatedQuery(request.workload, pace)


def _ring(place: Place) -> RingGroup:
    """Return the ring of workers on several devices, of which few workers are."""
    from powerlab.engine.training.ring import RingGroup

    return RingGroup(place)


def _bench() -> Bench:
    """Return a bench for single steps; whoever runs another engine need not load the built-in one."""
    from powerlab.measure.layers.bench import Bench

    return Bench()


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until they end; an error is an answer, and the last one."""
    job: Job | None = None
    bench: Bench | None = None
    try:
        while (request := read_request(requests)) is not None:
            reply: Reply = Ready()
            try:
                match request:
                    case Load():
                        job = Job(request)
                        reply = Ready(processor_name=job.processor_name)
                    case Follow() | WarmUp() | Measure() | Show() if job is not None:
                        reply = job.carry_out(request)
                    case LoadLayers() | RepeatStep() | FindCeilings():
                        bench = bench or _bench()
                        reply = bench.answer(request)
                    case _:
                        reply = Broken(detail="no model is loaded")
            except PowerlabError as error:
                reply = Refused(sentence=str(error), memory=isinstance(error, TooLargeError))
            except Exception as error:
                reply = Broken(detail=f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
            replies.write(encode(reply))
            replies.flush()
            if isinstance(reply, (Refused, Broken)):
                return
    finally:
        if bench is not None:
            bench.close()
        if job is not None:
            job.close()


def main() -> None:
    """Serve the process that started this one; SIGTERM ends it in an orderly way, between two inferences."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    requests = os.fdopen(os.dup(0), "rb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    with requests, os.fdopen(int(sys.argv[1]), "wb") as replies:
        serve(requests, replies)


if __name__ == "__main__":
    main()
