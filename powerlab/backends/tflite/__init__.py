"""powerlab's graph as a TFLite flatbuffer, the format LiteRT runs. Needs the ``ai-edge-litert`` package."""

from __future__ import annotations

from typing import Any

from powerlab.backends.tflite.floats import FLOATS
from powerlab.backends.tflite.quantized import QUANTIZED
from powerlab.backends.tflite.scales import scales_of
from powerlab.backends.tflite.writer import Writer
from powerlab.backends.translation import KNOWN_OF_BYTES, rule_for
from powerlab.engine.ir.graph import Graph
from powerlab.engine.passes import optimise_for_others

_IDENTIFIER = b"TFL3"


def tflite_model(loaded: Graph, schema: Any, flatbuffers: Any) -> bytes:
    """Return the flatbuffer; inputs and outputs keep the graph's order, images have their channels last.

    Args:
        loaded: a graph as it was loaded or quantized.
        schema: the module ``ai_edge_litert.schema_py_generated``.
        flatbuffers: the module of that name.

    Raises:
        PowerlabError: a node has no such form in TFLite.
    """
    graph = optimise_for_others(loaded)
    writer = Writer(graph, schema, scales_of(loaded, graph))
    writer.subgraph.inputs = [writer.of_graph(info.name) for info in graph.inputs]
    for node in graph.nodes:
        if node.op_type in QUANTIZED:
            rule_for("litert", QUANTIZED, node, KNOWN_OF_BYTES)(writer, node)
        else:
            rule_for("litert", FLOATS, node)(writer, node)
    writer.subgraph.outputs = [writer.of_graph(info.name) for info in graph.outputs]
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(writer.model.Pack(builder), _IDENTIFIER)
    return bytes(builder.Output())
