"""LiteRT, formerly TensorFlow Lite, on the processor, with XNNPACK where it computes an operator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.backends.base import LoadOptions
from powerlab.backends.offers import check_offers
from powerlab.backends.packages import required
from powerlab.backends.tflite import tflite_model
from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.ir.graph import Graph
from powerlab.engine.quantization.precisions import in_precision

PRECISIONS = ("fp32", "int8")


class LitertBackend:
    """An interpreter of LiteRT; fulfils :class:`powerlab.backends.base.Backend`."""

    def __init__(self, graph: Graph, interpreter: Any) -> None:
        self._interpreter = interpreter
        self._shapes = {info.name: info.shape for info in graph.inputs}
        details = interpreter.get_input_details(), interpreter.get_output_details()
        self._inputs, self._outputs = (
            {info.name: detail["index"] for info, detail in zip(infos, found, strict=True)}
            for infos, found in zip((graph.inputs, graph.outputs), details, strict=True)
        )

    def inputs(self, seed: int) -> dict[str, NDArray[np.float32]]:
        """Return the seeded inputs, pictures in memory as LiteRT wants them: pixel by pixel, channels side by side."""
        return {name: _channels_last_in_memory(values) for name, values in synthetic_inputs(self._shapes, seed).items()}

    def run(self, inputs: dict[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
        """Run one inference."""
        for name, values in inputs.items():
            self._interpreter.tensor(self._inputs[name])()[...] = (
                np.moveaxis(values, 1, -1) if values.ndim == 4 else values
            )
        self._interpreter.invoke()
        return {name: _channels_first(self._interpreter.get_tensor(index)) for name, index in self._outputs.items()}


def load(options: LoadOptions) -> LitertBackend:
    """Load a model; the interpreter and XNNPACK use exactly the threads given.

    Raises:
        PowerlabError: LiteRT is not installed, does not offer what is asked for, or has no such operator.
    """
    check_offers("litert", options, PRECISIONS)
    library = required("litert", "ai_edge_litert.interpreter")
    schema, flatbuffers = (required("litert", name) for name in ("ai_edge_litert.schema_py_generated", "flatbuffers"))
    loaded = load_graph(options.model, batch_size=options.batch_size)
    graph = in_precision(loaded, options.model, options.precision)
    try:
        interpreter = library.Interpreter(
            model_content=tflite_model(graph, schema, flatbuffers), num_threads=options.threads
        )
        interpreter.allocate_tensors()
    except (RuntimeError, ValueError) as error:
        raise PowerlabError(f"litert refuses {options.model}: {str(error).strip().splitlines()[0][:200]}") from error
    return LitertBackend(graph, interpreter)


def _channels_last_in_memory(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the same NCHW array, so laid out that handing it over is one plain copy."""
    if values.ndim != 4:
        return values
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(values, 1, -1)), -1, 1)


def _channels_first(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.ascontiguousarray(np.moveaxis(values, -1, 1)) if values.ndim == 4 else values
