"""Weights that steps have a recipe for, made while the steps after them are lowered.

Reading and packing them needs no interpreter lock, lowering does; so a network loads in the time of the longer of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from powerlab.engine.ir.constants import Recipe, value_of
from powerlab.engine.program.program import Floats


class PackedWeights:
    """Makes weights on as many threads as the plan will have, the caller being one.

    Args:
        threads: of the plan.
    """

    def __init__(self, threads: int) -> None:
        self._recipes: dict[int, Recipe] = {}
        self._begun: dict[int, Future[Floats]] = {}
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def add(self, step: int, recipe: Recipe) -> None:
        """Let the weights of a step be made; some other thread may begin at once."""
        self._recipes[step] = recipe
        if self._pool is not None:
            self._begun[step] = self._pool.submit(value_of, recipe)

    def finish(self) -> Mapping[int, Floats]:
        """Return the weights by step; the caller makes those that nobody has begun.

        The largest come first: what is read for the last ones, when most is there, is little.
        """
        made: dict[int, Floats] = {}
        try:
            for step, recipe in sorted(self._recipes.items(), key=lambda item: -item[1].size):
                begun = self._begun.get(step)
                if begun is None or begun.cancel():
                    made[step] = recipe.make()
            made |= {step: begun.result() for step, begun in self._begun.items() if step not in made}
        finally:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
        return made
