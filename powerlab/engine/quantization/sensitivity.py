"""Which layers stay in float32: those that cost most, until what is asked of the outputs is met.

A layer costs what the outputs lose if it alone is quantized. Layers are left out from the costliest on; how many is
found by halving, as leaving out more hardly ever makes outputs worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph
from powerlab.engine.quantization.calibrate import Calibration
from powerlab.engine.quantization.noise import references, tensor_sqnr_db
from powerlab.engine.quantization.observe import Arrays
from powerlab.engine.quantization.quantize import Options, Quantized, quantize_graph


class Result(Struct, frozen=True):
    """A quantized network and what it keeps of the float one's signal.

    Attributes:
        quantized: the network.
        layers_db: SQNR at the output of each quantized layer, with the errors of all layers before it.
        outputs_db: SQNR of each output of the network.
    """

    quantized: Quantized
    layers_db: dict[str, float]
    outputs_db: dict[str, float]

    @property
    def sqnr_db(self) -> float:
        """Return that of the worst output."""
        return min(self.outputs_db.values())


class Search:
    """Quantizes a network in several ways, and compares each with the float network on the same inputs."""

    def __init__(self, graph: Graph, calibration: Calibration, batches: Sequence[Arrays], options: Options) -> None:
        self._graph, self._calibration, self._batches, self._options = graph, calibration, batches, options
        self._all = quantize_graph(graph, calibration, options)
        self._outputs = [info.name for info in graph.outputs]
        names = [*(layer.output for layer in self._all.layers), *self._outputs]
        self._expected = references(graph, names, batches)

    @cached_property
    def whole(self) -> Result:
        """Return the network with every layer quantized."""
        return self.measured(frozenset())

    def measured(self, floats: frozenset[str]) -> Result:
        """Return the network with some layers left in float32."""
        options = replace(self._options, floats=self._options.floats | floats)
        quantized = quantize_graph(self._graph, self._calibration, options)
        seen_as = {**quantized.seen_as, **{name: name for name in self._outputs}}
        ratios = tensor_sqnr_db(self._expected, quantized.graph, seen_as, self._batches)
        layers = {layer.name: ratios[layer.output] for layer in quantized.layers}
        return Result(quantized, layers, {name: ratios[name] for name in self._outputs})

    def until(self, least_sqnr_db: float | None) -> Result:
        """Return the network with as few layers in float32 as the outputs need.

        Raises:
            PowerlabError: not even one quantized layer leaves that much.
        """
        result = self.whole
        if least_sqnr_db is None or result.sqnr_db >= least_sqnr_db:
            return result
        names = [layer.name for layer in self._all.layers]
        alone = {name: self.measured(frozenset(names) - {name}).sqnr_db for name in names}
        costly = sorted(names, key=lambda name: alone[name])
        low, high = 0, len(costly)
        while high - low > 1:
            middle = (low + high) // 2
            tried = self.measured(frozenset(costly[:middle]))
            if tried.sqnr_db >= least_sqnr_db:
                high, result = middle, tried
            else:
                low = middle
        if high == len(costly):
            raise PowerlabError(
                f"no layer can be quantized with an SQNR of {least_sqnr_db:g} dB at the outputs; ask for less."
            )
        return result
