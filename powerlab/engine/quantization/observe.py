"""Running a graph that has not been optimised, and seeing any of its tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from powerlab.engine.ir.graph import Graph
from powerlab.engine.passes import optimise
from powerlab.engine.session import Session

Arrays = Mapping[str, NDArray[Any]]


class Observed:
    """A graph whose tensors ``names`` are seen; inputs among them are what is fed."""

    def __init__(self, graph: Graph, names: Iterable[str], threads: int | None = None) -> None:
        given = {info.name for info in graph.inputs}
        made = tuple(dict.fromkeys(name for name in names if name not in given and name not in graph.kept_constants))
        self._fed = tuple(dict.fromkeys(name for name in names if name in given))
        outside = {name: dtype for name, dtype in graph.outside.items() if name in given}
        outputs = tuple(graph.tensors[name] for name in made) or graph.outputs
        seen = replace(graph, outputs=outputs, outside=outside)
        self._session = Session(optimise(seen), threads=threads, tuned=False)

    def run(self, inputs: Arrays) -> dict[str, NDArray[np.float32]]:
        """Return the tensors, by name."""
        made = self._session.run(inputs)
        return {**made, **{name: np.asarray(inputs[name], np.float32) for name in self._fed}}
