"""A graph, or a network of the zoo, on the GPU against the same on the processor."""

from __future__ import annotations

import numpy as np
from engine_models import random_inputs, relative_error
from msgspec.structs import replace

from powerlab.engine import Session
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.gpu.model import GpuModel
from powerlab.engine.ir.graph import Graph, Node, TensorInfo
from powerlab.engine.passes import optimise
from powerlab.engine.quantization.precisions import in_precision

TOLERANCE = 2e-5
SMALL = {
    "densenet121": 32,
    "efficientnet-b0": 32,
    "lstm2": 0,
    "mobilenetv2": 32,
    "mobilenetv3": 32,
    "resnet18": 32,
    "resnet50": 32,
    "squeezenet": 32,
    "vit-tiny": 0,
    "yolov3-tiny": 32,
}
"""Network → pixels of a side; 0: as it is."""
LARGE = {"alexnet": 0, "densenet201": 32, "fcn5": 0, "resnet101": 32, "resnet152": 32, "vgg16": 0, "yolov3": 64}
"""Those that take seconds: a campaign."""


def compared(graph, *, tolerance=TOLERANCE, **choices):
    """Compare a graph on the GPU with the processor, and its bits with those of an arena full of NaN."""
    inputs = random_inputs(graph)
    model = GpuModel(optimise(graph, for_cores=False), **choices)
    found = model.run(inputs)
    model.poison()
    again = model.run(inputs)
    expected = Session(optimise(graph), 1).run(inputs)
    assert all(np.array_equal(found[name], again[name]) for name in found)
    assert relative_error(found, expected) < tolerance
    return model


def agrees(name, *, tolerance, precision="fp32", reference=None):
    """Compare a network of the zoo with the processor's, and its bits with those of an arena full of NaN.

    Return the session on the GPU and what it was given; ``reference`` is the processor's precision, fp32 unless told.
    """
    pixels = (SMALL | LARGE)[name]
    shapes = {"x": (1, 3, pixels, pixels)} if pixels else None
    on_gpu = Session(name, device="gpu", shapes=shapes, precision=precision)
    inputs = synthetic_inputs(on_gpu.inputs, 1, on_gpu.dtypes)
    found = on_gpu.run(inputs)
    expected = Session(name, 1, shapes=shapes, precision=reference or "fp32").run(inputs)
    for key, value in expected.items():
        assert np.abs(found[key] - value).max() <= tolerance * np.abs(value).max()
    on_gpu.poison()
    again = on_gpu.run(inputs)
    assert all(np.array_equal(found[key], again[key]) for key in found)
    return on_gpu, inputs


def bytes_layer_by_layer(name):
    """Let the GPU compute each layer in bytes of a network from the processor's bytes.

    Return what both made of every tensor of bytes, as float32: its name -> (the GPU's, the processor's).
    """
    in_bytes = in_precision(load_graph(name), name, "int8")
    processor_s, gpu_s = (optimise(in_bytes, for_cores=cores) for cores in (True, False))
    made = _bytes_made(processor_s)
    assert made == _bytes_made(gpu_s)
    inputs = random_inputs(processor_s)
    expected = Session(_with_bytes_seen(processor_s, made), 1).run(inputs)
    fed = {_FED + one.name: expected[_SEEN + one.name] for one in made}
    found = GpuModel(_with_bytes_seen(_with_bytes_fed(gpu_s, made), made)).run(inputs | fed)
    return {one.name: (found[_SEEN + one.name], expected[_SEEN + one.name]) for one in made}


_SEEN, _READ, _FED = "seen ", "read ", "fed "
_AS_THEY_ARE = {"step": 1.0, "zero": 0}


def _bytes_made(graph: Graph) -> list[TensorInfo]:
    made = (graph.tensors[name] for node in graph.nodes for name in node.outputs)
    return [one for one in made if one.dtype == np.uint8]


def _with_bytes_seen(graph: Graph, made: list[TensorInfo]) -> Graph:
    """Return a graph that also gives these tensors of bytes."""
    seen = [TensorInfo(_SEEN + one.name, one.shape) for one in made]
    nodes = [Node("Dequantize", _SEEN + one.name, (one.name,), (_SEEN + one.name,), _AS_THEY_ARE) for one in made]
    return replace(graph.rewritten((*graph.nodes, *nodes), tensors=seen), outputs=(*graph.outputs, *seen))


def _with_bytes_fed(graph: Graph, made: list[TensorInfo]) -> Graph:
    """Return a graph whose layers read inputs of their own in place of these tensors, which it still makes."""
    fed = [TensorInfo(_FED + one.name, one.shape) for one in made]
    give = [Node("Quantize", _FED + one.name, (_FED + one.name,), (_READ + one.name,), _AS_THEY_ARE) for one in made]
    names = {one.name: _READ + one.name for one in made}
    layers = [replace(node, inputs=tuple(names.get(name, name) for name in node.inputs)) for node in graph.nodes]
    read = (TensorInfo(_READ + one.name, one.shape, one.dtype) for one in made)
    return replace(graph.rewritten((*give, *layers), tensors=(*fed, *read)), inputs=(*graph.inputs, *fed))
