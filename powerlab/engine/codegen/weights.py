"""Weights that steps have a recipe for, made by other threads while the steps after them are lowered.

Lowering needs the interpreter lock, and who wants it beside may wait for milliseconds. Where there are few weights, the
caller reads them, and threads that never want the lock pack them. To read many takes long: threads of Python's do both
then, for large ones meanwhile, for small ones when all steps are lowered.

Steps with equal weights, as those of a detector's head at every scale or of each round of a refinement, have them in
memory once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from msgspec import Struct

from powerlab.engine.codegen.pack import packs_in_queue
from powerlab.engine.ir.constants import Recipe, Value, origin, source_of
from powerlab.engine.ir.scratch import Scratch
from powerlab.engine.program.program import Floats
from powerlab.engine.runtime.memory import value_bytes
from powerlab.engine.target.tiers import native_engine

_LARGE_BYTES = 2**20
_FEW_BYTES = 2**23
"""So much is read and packed faster than a thread of Python's is started."""
_TINY_BYTES = 2**15
"""So much is packed faster than a thread of the queue is started."""
_MOST_READ = 2
"""So many weights may be read and not yet packed: what they lie in is used again."""


class Made(Protocol):
    """Weights that were made for other plans."""

    def find(self, recipe: Recipe) -> Floats | None:
        """Return what was made by a recipe like this one; None: nothing was."""

    def add(self, recipe: Recipe, weights: Floats) -> None:
        """Note what was made."""


class _Read(Struct):
    """Memory that weights were read into, and the number of the work that packs them."""

    scratch: Scratch
    work: int = -1


class PackedWeights:
    """Makes weights on as many threads as the plan will have, the caller being one.

    Args:
        threads: of the plan.
        total_bytes: of all weights, as they are read.
        before: weights made before, and where to note those made now; None: nobody asks for them.
    """

    def __init__(self, threads: int, total_bytes: int, before: Made | None = None) -> None:
        self._others = threads - 1 if total_bytes >= _TINY_BYTES else 0
        self._few = total_bytes <= _FEW_BYTES
        self._before = before
        self._found: dict[int, Floats] = {}
        self._recipes: dict[int, Recipe] = {}
        self._first: dict[Recipe, tuple[int, Recipe]] = {}
        self._alike: dict[Recipe, dict[Hashable, int]] = {}
        self._equal: dict[int, int] = {}
        self._begun: dict[int, Future[Floats]] = {}
        self._packed: dict[int, Floats] = {}
        self._read: list[_Read] = []
        self._queue = native_engine().WorkQueue(self._others)
        self._scratches = _Scratches()
        self._pool: ThreadPoolExecutor | None = None

    def share(self, step: int, recipe: Recipe) -> bool:
        """Tell whether a step has the weights of one before it: where a recipe like its own makes those."""
        source = source_of(recipe)
        if source is None:
            return False
        first, first_recipe = self._first.setdefault(source, (step, recipe))
        if first == step:
            return False
        alike = self._alike.setdefault(source, {})
        if not alike:
            alike[origin(first_recipe)] = first
        same = alike.setdefault(origin(recipe), step)
        if same == step:
            return False
        self._equal[step] = same
        return True

    def add(self, step: int, recipe: Recipe) -> None:
        """Let the weights of a step be made; some other thread may begin at once."""
        found = None if self._before is None else self._before.find(recipe)
        if found is not None:
            self._found[step] = found
            return
        self._recipes[step] = recipe
        if self._others == 0:
            return
        if self._few and packs_in_queue(recipe.way):
            self._packed[step] = self._queued(recipe.way, *recipe.sources)
        elif not self._few and value_bytes(recipe) >= _LARGE_BYTES:
            self._begin(step)

    def finish(self) -> Mapping[int, Floats]:
        """Return the weights by step; the caller makes those that nobody has begun.

        The largest come first: what is read for the last ones, when most is there, is little.
        """
        made = dict(self._packed)
        largest_first = sorted(self._recipes.keys() - made.keys(), key=lambda step: -self._recipes[step].size)
        small = [step for step in largest_first if step not in self._begun]
        try:
            if sum(value_bytes(self._recipes[step]) for step in small) >= _FEW_BYTES:
                for step in reversed(small):
                    self._begin(step)
            for step in largest_first:
                begun = self._begun.get(step)
                if begun is None or begun.cancel():
                    made[step] = self._made(self._recipes[step])
            self._queue.finish()
            made |= {step: begun.result() for step, begun in self._begun.items() if step not in made}
        finally:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
        if self._before is not None:
            for step, weights in made.items():
                self._before.add(self._recipes[step], weights)
        made |= self._found
        return made | {step: made[same] for step, same in self._equal.items()}

    def _begin(self, step: int) -> None:
        if self._others > 0:
            self._pool = self._pool or ThreadPoolExecutor(self._others)
            self._begun[step] = self._pool.submit(self._made, self._recipes[step])

    def _queued(self, pack: Callable[..., Floats], weights: Value) -> Floats:
        """Return what the queue is going to pack into."""
        if not isinstance(weights, Recipe):
            return pack(weights, queue=self._queue)
        read = self._next_read()
        packed = pack(read.scratch.read(weights.make), queue=self._queue)
        read.work = self._queue.added - 1
        return packed

    def _next_read(self) -> _Read:
        """Return memory that nobody packs from."""
        for read in self._read:
            if self._queue.is_done(read.work):
                return read
        if len(self._read) == _MOST_READ:
            self._queue.finish()
            return self._read[0]
        self._read.append(_Read(Scratch()))
        return self._read[-1]

    def _made(self, recipe: Recipe) -> Floats:
        return self._scratches.own.made(recipe.make)


class _Scratches(threading.local):
    """A scratch for each thread; they are given up with this."""

    def __init__(self) -> None:
        self.own = Scratch()
