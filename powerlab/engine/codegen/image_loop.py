"""How much of a network a batch goes through image by image.

The first layers of a network make large images of few channels. A batch of them fits no cache, while one image does,
and the weights are small enough to be read again for every image. Later it is the other way round. So the first nodes
are computed for one image after the other, and the rest for the whole batch: up to the node where the bytes of images
that need not go to memory and back, less those of weights that are read again, are most.
"""

from __future__ import annotations

import itertools

from powerlab.engine.codegen.attributes import number
from powerlab.engine.ir.graph import IMAGE_AXES, Graph, Node
from powerlab.engine.ops.quantization import QUANTIZED
from powerlab.engine.program.layout import shape4
from powerlab.engine.program.storage import FLOAT_BYTES

_LEAST_BYTES = 4 << 20
"""Operands of a batch that are smaller are taken to stay in the caches anyway: a few times a second-level cache."""

_ENOUGH = 4
"""Images a thread, of which one more or less that some threads have is little."""


_POOLS = ("AveragePool", "GlobalAveragePool", "MaxPool", "Pool")
_ELEMENT_WISE = ("Add", "Clamp", "Multiply", "ScaleShift", "HardSigmoid", "HardSwish", "Sigmoid", "Silu")
_IMAGE_BY_IMAGE = frozenset(
    {
        "Chain",
        "FusedConv",
        "FusedConvTranspose",
        "ImagePad",
        "Interpolate",
        "LRN",
        "Resize",
        *_POOLS,
        *_ELEMENT_WISE,
        *QUANTIZED,
    }
)
"""Operators that treat every image alike and by itself."""


def looped_nodes(graph: Graph) -> int:
    """Return how many nodes of an optimised graph, from the first on, are computed image by image."""
    if batch_size(graph) == 1:
        return 0
    gains = [
        _saved_bytes(graph, node) - _read_again_bytes(graph, node)
        for node in itertools.takewhile(lambda node: _image_by_image(graph, node), graph.nodes)
    ]
    sums = list(itertools.accumulate(gains, initial=0))
    return max(range(len(sums)), key=lambda count: (sums[count], -count))


def threads_apart(graph: Graph, threads: int) -> int:
    """Return how many threads take images of the looped nodes through by themselves; 1: all take each together.

    What another core has just written comes from its cache at a fraction of the speed of a core's own, so a thread had
    better have whole images, where there are enough for all threads to end at about the same time.
    """
    images = batch_size(graph)
    even = images % threads == 0 and images > threads
    return threads if even or images >= _ENOUGH * threads else 1


def batch_size(graph: Graph) -> int:
    """Return the images of the first input; 1 where there is no input."""
    return shape4(graph.inputs[0].shape)[0] if graph.inputs else 1


def _image_by_image(graph: Graph, node: Node) -> bool:
    images = {
        shape4(graph.shape(name))[0] for name in (*node.inputs, *node.outputs) if name not in graph.constants and name
    }
    if images != {batch_size(graph)} or any(len(graph.shape(name)) > IMAGE_AXES for name in node.outputs if name):
        return False
    if node.op_type == "Concat":
        return number(node, "axis") == 1 and len(graph.shape(node.outputs[0])) == IMAGE_AXES
    return node.op_type in _IMAGE_BY_IMAGE


def _saved_bytes(graph: Graph, node: Node) -> int:
    names = [name for name in (*node.inputs, *node.outputs) if name and name not in graph.constants]
    moved = sum(_bytes(graph, name) for name in names)
    return moved if moved > _LEAST_BYTES else 0


def _read_again_bytes(graph: Graph, node: Node) -> int:
    weights = sum(_bytes(graph, name) for name in node.inputs if name in graph.constants)
    return weights * (batch_size(graph) - 1)


def _bytes(graph: Graph, tensor: str) -> int:
    """Return how much room a tensor takes: floats, or the bytes of quantized ones."""
    info = graph.tensors[tensor]
    return info.elements * min(FLOAT_BYTES, info.dtype.itemsize)
