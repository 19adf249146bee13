"""Weights that steps have a recipe for, made on several threads.

Reading and packing them needs no interpreter lock, lowering does, and who wants the lock may wait for milliseconds. So
large weights are made while the steps after them are lowered, small ones when all steps are.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from powerlab.engine.ir.constants import Recipe
from powerlab.engine.ir.scratch import Scratch
from powerlab.engine.program.program import Floats
from powerlab.engine.runtime.memory import value_bytes

_LARGE_BYTES = 2**20
_FEW_BYTES = 2**23
"""So many small weights are made faster than a thread is started."""


class Made(Protocol):
    """Weights that were made for other plans."""

    def find(self, recipe: Recipe) -> Floats | None:
        """Return what was made by a recipe like this one; None: nothing was."""

    def add(self, recipe: Recipe, weights: Floats) -> None:
        """Note what was made."""


class PackedWeights:
    """Makes weights on as many threads as the plan will have, the caller being one.

    Args:
        threads: of the plan.
        before: weights made before, and where to note those made now; None: nobody asks for them.
    """

    def __init__(self, threads: int, before: Made | None = None) -> None:
        self._before = before
        self._found: dict[int, Floats] = {}
        self._recipes: dict[int, Recipe] = {}
        self._begun: dict[int, Future[Floats]] = {}
        self._scratches = _Scratches()
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def add(self, step: int, recipe: Recipe) -> None:
        """Let the weights of a step be made; some other thread may begin at once."""
        found = None if self._before is None else self._before.find(recipe)
        if found is not None:
            self._found[step] = found
            return
        self._recipes[step] = recipe
        if value_bytes(recipe) >= _LARGE_BYTES:
            self._begin(step)

    def finish(self) -> Mapping[int, Floats]:
        """Return the weights by step; the caller makes those that nobody has begun.

        The largest come first: what is read for the last ones, when most is there, is little.
        """
        made: dict[int, Floats] = {}
        largest_first = sorted(self._recipes, key=lambda step: -self._recipes[step].size)
        small = [step for step in largest_first if step not in self._begun]
        try:
            if sum(value_bytes(self._recipes[step]) for step in small) >= _FEW_BYTES:
                for step in reversed(small):
                    self._begin(step)
            for step in largest_first:
                begun = self._begun.get(step)
                if begun is None or begun.cancel():
                    made[step] = self._made(self._recipes[step])
            made |= {step: begun.result() for step, begun in self._begun.items() if step not in made}
        finally:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
        if self._before is not None:
            for step, weights in made.items():
                self._before.add(self._recipes[step], weights)
        return made | self._found

    def _begin(self, step: int) -> None:
        if self._pool is not None:
            self._begun[step] = self._pool.submit(self._made, self._recipes[step])

    def _made(self, recipe: Recipe) -> Floats:
        return self._scratches.own.made(recipe.make)


class _Scratches(threading.local):
    """A scratch for each thread; they are given up with this."""

    def __init__(self) -> None:
        self.own = Scratch()
