"""Engines take turns: each in a process of its own, never two computing at the same time.

A turn is a few inferences that warm caches and clocks up again, which are not counted, and a few that are; every engine
of a cell has the same number of both. A turn ends when the engine's threads have gone to sleep: threads that went on
spinning would take a core from the next one.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Protocol, cast

import numpy as np
import psutil
from numpy.typing import NDArray

from bench.peers.ratios import OURS, Cell, Measured
from powerlab.backends.base import LoadOptions
from powerlab.backends.registry import backend_module, load
from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import WorkloadKind
from powerlab.engine.frontend.load import load_graph
from powerlab.measure.output_check import TOLERANCES, largest_difference
from powerlab.measure.recording.background_load import BackgroundLoad

Outputs = dict[str, NDArray[np.float32]]

_ASLEEP_LOOK_S = 0.004
_ASLEEP_CORES = 0.05
_ASLEEP_LIMIT_S = 2.0
ANSWER_S = 300.0
_MOST_RUNS_A_TURN = 20
_LONG_S = 0.25
"""An inference this long warms up by itself: cold caches and sleeping threads cost it some milliseconds."""


class EngineError(Exception):
    """Why an engine takes no part, in a sentence."""


class Engine(Protocol):
    """A model loaded into an engine; see :class:`EngineProcess`."""

    def outputs(self) -> Outputs:
        """Return what it computed for the seeded inputs, once it has loaded."""

    def turn(self, warm: int, counted: int) -> list[float]:
        """Run ``warm`` inferences and then ``counted`` more; return the seconds of each of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long a cell is measured.

    Attributes:
        cell_s: seconds of its rounds; what loading takes comes on top.
        turn_s: about how long the counted inferences of the fastest engine's turn take; 0: each turn is one inference,
            and none is tried before.
        least_rounds: rounds at least, however slow a model is.
        answer_s: an engine that takes longer to load, or for a turn, takes no part.
    """

    cell_s: float
    turn_s: float
    least_rounds: int
    answer_s: float = ANSWER_S


class EngineProcess:
    """A model loaded into an engine in a process of its own; fulfils :class:`Engine`."""

    def __init__(self, engine: str, cell: Cell, answer_s: float = ANSWER_S) -> None:
        self._answer_s = answer_s
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        options = LoadOptions(
            model=cell.model,
            batch_size=cell.batch_size,
            threads=cell.threads,
            precision=cell.precision,
            processor=cell.processor,
            optimizer=cell.optimizer,
        )
        self._process: SpawnProcess = context.Process(target=_serve, args=(theirs, engine, options), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """The process it runs in."""
        return cast(int, self._process.pid)

    def outputs(self) -> Outputs:
        """Return its outputs for the seeded inputs."""
        return cast(Outputs, self._answer())

    def turn(self, warm: int, counted: int) -> list[float]:
        """Run so many inferences, and return the seconds that each of the counted ones took."""
        with contextlib.suppress(BrokenPipeError):  # the answer says why
            self._pipe.send((warm, counted))
        return cast(list[float], self._answer())

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join()
        self._pipe.close()

    def _answer(self) -> object:
        try:
            if not self._pipe.poll(self._answer_s):
                raise EngineError(f"gave no answer in {self._answer_s:.0f} s")
            answer = self._pipe.recv()
        except (EOFError, ConnectionResetError) as error:
            self._process.join()
            raise EngineError(f"died (exit code {self._process.exitcode})") from error
        if isinstance(answer, EngineError):
            raise answer
        return answer


def _serve(pipe: Connection, engine: str, options: LoadOptions) -> None:
    """Load an engine, send its outputs, then the latencies of every turn asked for."""
    try:
        kind = WorkloadKind.TRAIN if options.optimizer else WorkloadKind.INFERENCE
        backend = load(backend_module(engine, kind), options)
        inputs = backend.inputs(seed=0)
        outputs = backend.run(inputs)
        _wait_until_asleep()
        pipe.send(outputs)
        while True:
            warm, counted = pipe.recv()
            latencies = []
            for _ in range(warm + counted):
                start = time.perf_counter()
                backend.run(inputs)
                latencies.append(time.perf_counter() - start)
            _wait_until_asleep()
            pipe.send(latencies[warm:])
    except (PowerlabError, EngineError) as error:
        pipe.send(EngineError(str(error)))


def _wait_until_asleep() -> None:
    """Return when this process's threads use no core any more."""
    deadline = time.monotonic() + _ASLEEP_LIMIT_S
    while time.monotonic() < deadline:
        before_s, start = time.process_time(), time.monotonic()
        time.sleep(_ASLEEP_LOOK_S)
        if time.process_time() - before_s < _ASLEEP_CORES * (time.monotonic() - start):
            return
    raise EngineError(f"its threads still spin {_ASLEEP_LIMIT_S:g} s after an inference")


def balanced_orders(count: int) -> list[list[int]]:
    """Return orders of ``count`` engines in which each one follows every other one equally often.

    Source: E. J. Williams, "Experimental designs balanced for the estimation of residual effects of treatments", 1949.
    """
    zigzag = [0, *(place // 2 + 1 if place % 2 == 0 else count - place // 2 - 1 for place in range(count - 1))]
    orders = [[(place + shift) % count for place in zigzag] for shift in range(count)]
    return orders if count % 2 == 0 else orders + [order[::-1] for order in orders]


class _Turns:
    """The engines of a cell that still take part, what they took, and why the others do not."""

    def __init__(self, engines: Mapping[str, Engine], tolerance: float) -> None:
        self._engines, self._tolerance = engines, tolerance
        self.taken: dict[str, list[list[float]]] = {name: [] for name in engines}
        self.absent: dict[str, str] = {}
        self.differences: dict[str, float] = {}

    @property
    def comparable(self) -> bool:
        """Whether the built-in engine and a peer take part."""
        return OURS in self.taken and len(self.taken) > 1

    def check_outputs(self) -> None:
        """See how far each peer's outputs are from ours; who has none, or computes something else, is left out."""
        answers: dict[str, Outputs] = {}
        for name, engine in reversed(self._engines.items()):  # the first one last: in one place it is there
            try:
                answers[name] = engine.outputs()
            except EngineError as error:
                self._leave_out(name, str(error))
        for name, answer in answers.items():
            if name == OURS or OURS not in answers:
                continue
            difference = largest_difference(answer, answers[OURS])
            self.differences[name] = difference
            if difference > self._tolerance:
                self._leave_out(name, f"its outputs differ from ours by {difference:.2g} of the largest")

    def take(self, name: str, warm: int, counted: int) -> None:
        """Let an engine take its turn; one that fails takes no part any more."""
        if name in self.taken:
            try:
                self.taken[name].append(self._engines[name].turn(warm, counted))
            except EngineError as error:
                self._leave_out(name, str(error))

    def runs_a_turn(self, turn_s: float) -> tuple[int, int]:
        """Return how many inferences of a turn warm up and how many count, after one of each engine that does not."""
        if turn_s == 0:
            return 0, 1
        for name in list(self.taken):
            self.take(name, 0, 1)
        fastest_s = min((taken.pop()[0] for taken in self.taken.values()), default=turn_s)
        counted = min(_MOST_RUNS_A_TURN, max(1, math.floor(turn_s / fastest_s)))
        return (0 if fastest_s > _LONG_S else max(1, counted // 3)), counted

    def _leave_out(self, name: str, reason: str) -> None:
        self.absent[name] = reason
        del self.taken[name]


def tolerance(cell: Cell) -> float:
    """Return how far outputs may be apart, or the losses of a first step, which layers that drop at random decide."""
    drops = cell.optimizer and any(node.op_type == "Dropout" for node in load_graph(cell.model, batch_size=1).nodes)
    return math.inf if drops else TOLERANCES["fp32"]


def measure(
    cell: Cell, engines: Mapping[str, Engine], effort: Effort, clock: Callable[[], float] = time.monotonic
) -> Measured:
    """Let engines take turns in a cell.

    Args:
        cell: what they run.
        engines: by name, the built-in one among them.
        effort: how long.
        clock: seconds of a clock that runs steadily.
    """
    turns = _Turns(engines, tolerance(cell))
    turns.check_outputs()
    if turns.comparable:
        warm, counted = turns.runs_a_turn(effort.turn_s)
        names, deadline = list(turns.taken), clock() + effort.cell_s
        for done, order in enumerate(itertools.cycle(balanced_orders(len(names)))):
            if not turns.comparable or (done >= effort.least_rounds and clock() >= deadline):
                break
            for place in order:
                turns.take(names[place], warm, counted)
    taken = {name: rounds for name, rounds in turns.taken.items() if rounds}
    return Measured(
        cell=cell,
        turns_ms={name: [1e3 * statistics.median(turn) for turn in rounds] for name, rounds in taken.items()},
        least_ms={name: 1e3 * min(map(min, rounds)) for name, rounds in taken.items()},
        differences=turns.differences,
        absent=turns.absent,
    )


class OnePlace:
    """Room for one engine's process, where memory does not hold several: the next engine's takes the last one's place.

    Args:
        start: name -> a process that loads this engine.

    Attributes:
        others_cores: cores that other programs kept busy while a process was alive, at most.
    """

    def __init__(self, start: Callable[[str], EngineProcess]) -> None:
        self._start, self._name = start, ""
        self._process: EngineProcess | None = None
        self._outputs: Outputs = {}
        self._others = BackgroundLoad()
        self.others_cores = 0.0

    def loaded(self, name: str) -> tuple[EngineProcess, Outputs]:
        """Return an engine's process and the outputs of its first inference; loads it, unless it is there already.

        Raises:
            EngineError: it does not load.
        """
        if self._process is None or self._name != name:
            self.close()
            self._name, self._process = name, self._start(name)
            self._others = BackgroundLoad(self._process.pid)
            self._outputs = self._process.outputs()
        return self._process, self._outputs

    def close(self) -> None:
        """End the process that is there."""
        if self._process is not None:
            with contextlib.suppress(psutil.NoSuchProcess):  # an engine that died took its processor time along
                self.others_cores = max(self.others_cores, self._others.cores())
            self._process.close()
            self._process = None


@dataclass(frozen=True, slots=True)
class EngineInTurn:
    """An engine that is loaded when its turn comes, and stays until that of another one; fulfils :class:`Engine`."""

    place: OnePlace
    name: str

    def outputs(self) -> Outputs:
        """Return its outputs for the seeded inputs."""
        return self.place.loaded(self.name)[1]

    def turn(self, warm: int, counted: int) -> list[float]:
        """Run so many inferences, behind a first one where it was loaded anew; return the seconds of the counted."""
        return self.place.loaded(self.name)[0].turn(warm, counted)


def measure_processes(cell: Cell, peers: Sequence[str], effort: Effort) -> Measured:
    """Measure a cell with the built-in engine and ``peers``, each in a process of its own; they load side by side."""
    with contextlib.ExitStack() as stack:
        engines = {
            name: stack.enter_context(contextlib.closing(EngineProcess(name, cell, effort.answer_s)))
            for name in (OURS, *peers)
        }
        others = BackgroundLoad(*(engine.pid for engine in engines.values()))
        found = measure(cell, engines, effort)
        with contextlib.suppress(psutil.NoSuchProcess):  # an engine that died took its processor time along
            found = replace(found, others_cores=others.cores())
        return found


def measure_one_at_a_time(cell: Cell, peers: Sequence[str], effort: Effort) -> Measured:
    """Measure a cell whose engines do not fit into the memory together: one process at a time, one inference a turn.

    The first inference after each loading is not counted. Of two engines the one that ends a round begins the next one,
    and stays loaded.
    """
    place = OnePlace(lambda name: EngineProcess(name, cell, effort.answer_s))
    with contextlib.closing(place):
        found = measure(cell, {name: EngineInTurn(place, name) for name in (OURS, *peers)}, replace(effort, turn_s=0.0))
    return replace(found, one_at_a_time=True, others_cores=place.others_cores)
